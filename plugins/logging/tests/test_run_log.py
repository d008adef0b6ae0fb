"""The run log: every event in full, in a file that reads back, whatever happens to the process and the disk."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus_plugin_timetravel as timetravel
from locus import Event, ModelChunkEvent, TerminateEvent, ToolCompleteEvent, ToolContext
from locus.core.events import event_to_json
from locus.hooks.builtin import RunLogHook
from locus.journal import MemoryStore
from locus.models import Price
from locus_plugin_logging import RunLog, RunLogEntry, RunUsage, read_run_log
from locus_plugin_logging.runfile import RunFile, rotated_path
from locus_plugin_logging.runlog import FORMAT
from locus_plugin_logging.worker import Worker
from locus_testkit import ScriptedModel, call
from locus_testkit.strategies import events as emitted

from .kit import agent, kept, run

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "run.jsonl"


def script(**options: Any) -> ScriptedModel:
    return ScriptedModel(call("add", a=1, b=2), "It is 3.", **options)


@pytest.fixture(autouse=True)
def _no_lines() -> Any:
    with kept() as log:
        yield log


@pytest.mark.parametrize("chunks", [True, 3])
async def test_what_is_read_equals_what_was_emitted(path: Path, chunks: bool | int) -> None:
    model = ScriptedModel(call("add", a=1, b=2), call("fail", why="no\n\ud800"), "It is 3.", chunks=chunks)
    _, events = await run(agent(model, logging={"run_log": str(path)}))
    log = read_run_log(path)
    assert log.events == tuple(events)
    assert any(isinstance(event, ModelChunkEvent) for event in events)
    assert log.problems == ()


async def test_a_step_has_its_tool_arguments_latency_success_tokens_and_dollars_so_far(path: Path) -> None:
    model = ScriptedModel(
        call("add", a=1, b=2), call("fail", why="no"), "3.", price=Price(prompt=1_000_000.0, completion=2_000_000.0)
    )
    result, _ = await run(agent(model, hooks=[RunLogHook(path)]))
    log = read_run_log(path)
    added, failed = (entry for entry in log.entries if isinstance(entry.event, ToolCompleteEvent))
    assert isinstance(added.event, ToolCompleteEvent)
    assert isinstance(failed.event, ToolCompleteEvent)
    assert (added.event.tool_name, dict(added.event.arguments)) == ("add", {"a": 1, "b": 2})
    assert (added.event.result, added.event.error) == ("3", None)
    assert added.event.duration_ms > 0
    assert failed.event.error == "ValueError: no"
    assert added.spent == RunUsage(10, 5, 20.0)
    assert failed.spent == RunUsage(20, 10, 40.0)
    assert log.entries[-1].spent == RunUsage(30, 15, result.cost)


async def test_a_price_that_is_not_known_stays_unknown_and_a_free_call_costs_nothing(path: Path) -> None:
    await run(agent(script(), logging={"run_log": str(path)}))
    await run(agent(script(price=Price(prompt=0.0, completion=0.0)), logging={"run_log": str(path)}))
    assert [e.spent.cost for e in read_run_log(path).entries if isinstance(e.event, TerminateEvent)] == [None, 0.0]


async def test_only_its_owner_can_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        await run(agent(script(), logging={"run_log": str(path), "run_log_max_bytes": 1_500}))
    finally:
        os.umask(before)
    files = list(path.parent.iterdir())
    assert len(files) > 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_chunks_can_be_left_out_and_then_nobody_makes_the_model_stream(path: Path) -> None:
    hook = RunLogHook(path, chunks=False)
    assert hook.on_model_chunk is None
    result = await agent(script(chunks=True), hooks=[hook]).run("?")
    assert not any(isinstance(event, ModelChunkEvent) for event in read_run_log(path).events)
    assert result.text == "It is 3."


async def test_without_a_path_nothing_is_written_and_nothing_listens(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for level, listening in (("CRITICAL", 0), ("ERROR", 1)):
        heard = agent(script(), logging={"level": level}).runtime.hooks.listeners
        assert len(heard[TerminateEvent]) == listening
        assert heard[ModelChunkEvent] == ()
    await run(agent(script(), logging=True))
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240 - nobody else is there to wait


# -- rotation -------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(10, 100), st.integers(0, 4))
def test_files_stay_small_hold_whole_lines_and_the_newest(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int, backups: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "x"
    file = RunFile(path, most, backups)
    lines = [bytes([97 + n % 26]) * size + b"\n" for n, size in enumerate(sizes)]
    for line in lines:
        file.write(line)
    file.close()
    found = [path, *(rotated_path(path, n) for n in range(1, backups + 2))]
    there = [each.read_bytes() for each in reversed(found) if each.exists()]
    assert len(there) <= backups + 1
    assert b"".join(lines).endswith(b"".join(there))
    assert there[-1].endswith(lines[-1])
    assert all(len(each) <= most or each.count(b"\n") == 1 for each in there)
    if len(there) <= backups:
        assert b"".join(there) == b"".join(lines)


async def test_files_that_were_set_aside_are_read_too_the_oldest_first(path: Path) -> None:
    made = agent(script(after="cycle"), logging={"run_log": str(path), "run_log_max_bytes": 3_000})
    told = [event for _ in range(3) for event in (await run(made))[1]]
    assert rotated_path(path, 1).exists()
    assert read_run_log(path).events == tuple(told)
    assert len(read_run_log(path, rotated=False).entries) < len(told)


async def test_two_agents_can_write_to_one_file_and_a_file_that_was_taken_away_is_made_again(path: Path) -> None:
    options = {"run_log": str(path), "run_log_max_bytes": 4_000, "run_log_backups": 50}
    agents = [agent(script(after="cycle"), logging=options) for _ in range(2)]
    told: list[Event] = []

    async def go(made: Any) -> None:
        for _ in range(5):
            told.extend((await run(made))[1])

    async with anyio.create_task_group() as group:
        for made in agents:
            group.start_soon(go, made)
    log = read_run_log(path)
    assert sorted(e.event_id for e in log.events) == sorted(e.event_id for e in told)
    path.unlink()  # noqa: ASYNC240 - nobody else is there to wait
    _, events = await run(agents[0])
    assert read_run_log(path).of_run(events[0].run_id).events == tuple(events)


# -- reading --------------------------------------------------------------------------------------


@given(st.lists(emitted(), max_size=5), st.integers(1, 200))
def test_a_line_that_was_cut_off_is_reported_and_the_others_are_read(
    tmp_path_factory: pytest.TempPathFactory, told: list[Event], cut: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "x"
    lines = [
        json.dumps({"format": FORMAT, "event": event_to_json(event), "spent": {"input_tokens": 1}}) for event in told
    ]
    last = json.dumps({"format": FORMAT, "event": {"type": "terminate", "reason": "x" * 200}, "spent": {}})
    path.write_text("".join(f"{line}\n" for line in lines) + last[: -min(cut, len(last) - 1)], encoding="ascii")
    log = read_run_log(path)
    assert log.entries == tuple(RunLogEntry(event, RunUsage(1)) for event in told)
    (problem,) = log.problems
    assert f"line {len(told) + 1}, which is cut off in the middle" in problem


def test_what_is_not_an_entry_is_reported_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "x"
    forms: list[Any] = [
        5,
        {"format": 99},
        {"format": 1},
        {"format": 1, "event": {"type": "of_a_plugin"}, "spent": {}},
        {"format": 1, "event": {"type": "think"}, "spent": {"dollars": 1}},
    ]
    path.write_text("".join(f"{json.dumps(form)}\n" for form in forms) + "\xff\n", encoding="latin-1")
    log = read_run_log(path)
    assert log.entries == ()
    for problem, why in zip(
        log.problems, ("not an object", "format 99", "event", "import the plugin", "dollars", "utf-8"), strict=True
    ):
        assert why in problem


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_run_log(tmp_path / "none")


async def test_the_entries_of_one_run_can_be_picked(path: Path) -> None:
    made = agent(script(after="cycle"), logging={"run_log": str(path)})
    await run(made)
    _, events = await run(made)
    log = read_run_log(path).of_run(events[0].run_id)
    assert isinstance(log, RunLog)
    assert log.events == tuple(events)


# -- what can happen -------------------------------------------------------------------------------

_DYING = """
import asyncio, os, sys
from locus import Agent, tool
from locus_plugin_logging import RunLogHook
from locus_testkit import ScriptedModel, call

def die() -> str:
    "Die."
    hook._worker.flush_now()
    os._exit(9)

hook = RunLogHook(sys.argv[1])
asyncio.run(Agent(ScriptedModel(call("die")), tools=[die], hooks=[hook]).run("?", thread_id="t"))
"""

_LEAVING = """
import asyncio, sys
from locus import Agent
from locus_plugin_logging import RunLogHook
from locus_testkit import ScriptedModel

async def leave():
    async for event in Agent(ScriptedModel("Hi."), hooks=[RunLogHook(sys.argv[1])]).run("?"):
        if event.type == "think":
            sys.exit(0)
asyncio.run(leave())
"""


def program(text: str, path: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", text, path], env=environment, check=False).returncode


async def test_after_a_crash_in_a_line_the_next_process_begins_another(path: Path) -> None:
    assert program(_DYING, path) == 9
    with path.open("ab") as file:
        file.write(b'{"format":1,"event":{"type":"tool_comp')
    _, events = await run(agent(script(), logging={"run_log": str(path)}))
    log = read_run_log(path)
    assert log.events[-len(events) :] == tuple(events)
    assert [event.type for event in log.events[: -len(events)]][-1] == "tool_start"
    assert len(log.problems) == 1


def test_a_program_that_ends_in_the_middle_of_a_run_has_written_what_was_reported(path: Path) -> None:
    assert program(_LEAVING, path) == 0
    assert "think" in [event.type for event in read_run_log(path).events]


async def test_a_cancelled_run_is_in_it_to_its_end(path: Path) -> None:
    async def wait() -> str:
        """Wait."""
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.CancelScope() as scope:
        await agent(ScriptedModel(call("wait")), tools=[wait], hooks=[RunLogHook(path)]).run("?")
    last = read_run_log(path).events[-1]
    assert isinstance(last, TerminateEvent)
    assert last.reason == "Cancelled"


async def test_a_resumed_run_continues_in_the_file_and_in_the_sum(path: Path) -> None:
    def ask(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.interrupt("Sure?"))

    made = agent(
        ScriptedModel(call("ask"), "Good."), tools=[ask], checkpointer=MemoryStore(), logging={"run_log": str(path)}
    )
    await made.run("?", thread_id="t")
    result = await made.resume("t", "yes")
    log = read_run_log(path)
    assert [e.segment for e in log.events if isinstance(e, TerminateEvent)] == [0, 1]
    assert log.entries[-1].spent == RunUsage(20, 10, None)
    assert result.usage.prompt_tokens == 20


async def test_a_replay_writes_nothing(path: Path) -> None:
    made = agent(script(), checkpointer=MemoryStore(), logging={"run_log": str(path)})
    _, events = await run(made, thread_id="t")
    assert (await timetravel.replay(made, "t")).ok
    assert read_run_log(path).events == tuple(events)


async def test_a_disk_that_fails_is_reported_and_the_run_continues(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    made = agent(script(after="cycle"), logging={"run_log": str(tmp_path / "file" / "run.jsonl")})
    with kept("locus.logging") as warned:
        result, events = await run(made)
        await run(made)
    assert result.text == "It is 3."
    assert result.reports["logging"].startswith(f"{len(events)} events are not in ")
    assert [record.levelno for record in warned.records] == [logging.WARNING]


async def test_a_tool_that_holds_every_thread_does_not_keep_the_log_from_being_written(path: Path) -> None:
    release = threading.Event()

    def block() -> str:
        """Block."""
        release.wait(10)
        return "done"

    limiter = anyio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, block)
            await anyio.lowlevel.checkpoint()
            with anyio.fail_after(5):
                await run(agent(script(), logging={"run_log": str(path)}))
            release.set()
    finally:
        release.set()
        limiter.total_tokens = before
    assert read_run_log(path).events


async def test_it_can_wait_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    await run(agent(script(), logging={"run_log": str(path), "run_log_fsync": True}))
    assert len(synced) == 1
    await run(agent(script(), logging={"run_log": str(path)}))
    assert len(synced) == 1


async def test_who_brings_too_much_waits_and_nothing_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Worker] = []
    flush = Worker.flush

    async def noted(self: Worker) -> None:
        waited.append(self)
        await flush(self)

    monkeypatch.setattr("locus_plugin_logging.worker.BACKLOG", -1)
    monkeypatch.setattr(Worker, "flush", noted)
    _, events = await run(agent(script(), logging={"run_log": str(path)}))
    assert read_run_log(path).events == tuple(events)
    assert len(waited) == 2 * len(events)  # of lines and of the file


def test_when_no_thread_can_be_started_any_more_the_work_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    done: list[int] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    Worker(done.append).put(1)
    assert done == [1]


async def test_a_file_that_was_set_aside_and_not_begun_again_is_read(path: Path) -> None:
    _, events = await run(agent(script(), logging={"run_log": str(path)}))
    path.rename(rotated_path(path, 1))  # noqa: ASYNC240 - nobody else is there to wait
    assert read_run_log(path).events == tuple(events)


async def test_the_settings_leave_chunks_out_too(path: Path) -> None:
    made = agent(script(chunks=True), logging={"run_log": str(path), "run_log_chunks": False})
    assert made.runtime.hooks.listeners[ModelChunkEvent] == ()


async def test_the_thread_ends_when_there_is_nothing_to_do_and_comes_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_plugin_logging.worker.IDLE", 0.01)
    hook = RunLogHook(path)
    made = agent(script(after="cycle"), hooks=[hook])
    told: list[Event] = []
    for _ in range(2):
        told += (await run(made))[1]
        thread = hook._worker._thread
        if thread is not None:
            await anyio.to_thread.run_sync(thread.join, 5)
        assert hook._worker._thread is None
        assert hook._file._fd == -1
    assert read_run_log(path).events == tuple(told)
