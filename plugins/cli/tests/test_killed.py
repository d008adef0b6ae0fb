"""Runs that are killed, and runs that meet on one thread: other processes, as in life."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import Agent
from locus.core.errors import DeadLetter
from locus_plugin_sqlite import SqliteStore
from locus_testkit import CrashingStore, ScriptedModel, SimulatedCrash

Locus = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[bytes]"]

PATIENCE = 60.0


@pytest.fixture
def start(environment: dict[str, str], here: Path) -> Iterator[Start]:
    """Starts a command line that goes on in a process of its own."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "locus_plugin_cli", *arguments]
        running.append(
            subprocess.Popen(command, cwd=here, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        )
        return running[-1]

    yield begin
    for each in running:
        each.kill()
        each.communicate()


def appears(path: Path) -> None:
    """Wait until another process has written a file."""
    until = time.monotonic() + PATIENCE
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until, f"{path} was not written in time"
        time.sleep(0.02)


@pytest.fixture
def killed(start: Start, here: Path, tools: str) -> str:
    """The thread of a run that was killed in the middle of a tool."""
    running = start("run", "Pay it.", "-m", "toy:pays", "-t", tools, "-q", "-s", "Be careful.")
    appears(here / "charges")
    running.kill()
    running.wait()
    return ""


def listed(keeper: Locus) -> list[dict[str, Any]]:
    """The threads, the newest first."""
    return [json.loads(line) for line in keeper("threads", "--json").out.splitlines()]


def thread_of(keeper: Locus, status: str) -> str:
    """The only thread of that status."""
    (found,) = [row["thread_id"] for row in listed(keeper) if row["status"] == status]
    return str(found)


@pytest.mark.usefixtures("killed")
def test_a_killed_run_is_mentioned_once_and_goes_on_without_doing_anything_twice(keeper: Locus, here: Path) -> None:
    thread = thread_of(keeper, "crashed")

    unheard = [keeper("run", "x", "-m", "toy:echo", how) for how in ("--json", "--quiet")]
    told = keeper("run", "x", "-m", "toy:echo")
    again = keeper("run", "x", "-m", "toy:echo")

    assert [done.err for done in unheard] == ["", ""]
    assert len(told.lines) == 1
    assert told.err.startswith(f"locus: thread {thread} stopped in the middle ")
    command = told.lines[0].partition("; go on with: locus ")[2]
    assert command == f"run --thread {thread} --resume"
    assert again.err == ""
    shown = keeper("threads", "show", thread)
    assert "left in the middle: charge(cents=5)" in shown.out

    (here / "gate").touch()
    done = keeper(*command.split())

    assert done.status == 0
    assert "outcome unknown" in done.out
    assert "It is paid." in done.out
    assert [(here / name).read_text() for name in ("notes", "charges")] == ["once\n", "once\n"]
    for over in (keeper("threads", "resume", thread), keeper("run", "--thread", thread, "--resume")):
        assert (over.status, len(over.lines)) == (2, 1)
        assert f"ended with NoToolCalls: nothing of it is left to do; `locus run --thread {thread} PROMPT`" in over.err


@pytest.mark.usefixtures("killed")
def test_several_killed_runs_are_one_line(keeper: Locus, start: Start, here: Path, tools: str) -> None:
    (here / "charges").unlink()
    running = start("run", "Pay it.", "-m", "toy:pays", "-t", tools, "-q", "--thread", "second")
    appears(here / "charges")
    running.kill()
    running.wait()
    copied = keeper("threads", "backup", "x.db")
    assert (copied.status, copied.err) == (0, "")
    assert [row["status"] for row in listed(keeper)] == ["crashed", "crashed"]

    told = keeper("run", "x", "-m", "toy:echo")
    elsewhere = keeper("run", "x", "-m", "toy:echo", "--checkpointer", "x.db")

    assert len(told.lines) == 1
    assert "go on with: locus run --thread second --resume (1 more: locus threads)" in told.err
    assert "--thread second --resume --checkpointer x.db" in elsewhere.err


def test_ctrl_c_ends_a_resumed_run_and_says_how_the_conversation_goes_on(
    keeper: Locus, start: Start, terminal: Callable[..., Any]
) -> None:
    running = start("run", "x", "-m", "toy:prepares", "-q", "--thread", "t")
    until = time.monotonic() + PATIENCE
    while keeper("threads", "show", "t").status:
        assert time.monotonic() < until, "the run does not begin"
    running.kill()
    running.wait()

    resumed = terminal("threads", "resume", "t")
    resumed.expect("preparing the model")  # the call is under way
    resumed.send("\x03")
    resumed.expect("go on with: locus run --thread t --model toy:prepares PROMPT")
    assert resumed.finish() == 130
    row = json.loads(keeper("threads", "show", "t", "--json").out)
    assert (row["status"], row["resumable"]) == ("ended", False)


@pytest.mark.usefixtures("killed")
def test_a_run_that_a_worker_has_set_aside_says_why_and_goes_on_for_who_names_it(
    keeper: Locus, here: Path, tools: str
) -> None:
    thread = thread_of(keeper, "crashed")
    agent: Agent[Any, Any] = Agent(ScriptedModel(), checkpointer=here.parent / "state" / "threads.db")
    with pytest.raises(DeadLetter):
        anyio.run(lambda: agent.resume(thread, max_attempts=1))

    row = json.loads(keeper("threads", "show", thread, "--json").out)
    shown = keeper("threads", "show", thread).out

    cause = "the attempt broke off in execute of iteration 2, calling charge"
    assert (row["status"], row["detail"], row["resumable"]) == ("dead_letter", cause, True)
    assert "\tset aside, can be resumed\t" in keeper("threads").out
    assert f"set aside: {cause}, can be resumed" in shown
    assert "can be resumed; `locus threads` lists them" in keeper("run", "--resume").err
    assert keeper("run", "x", "-m", "toy:echo").err == ""

    (here / "gate").touch()
    assert keeper("threads", "resume", thread).status == 0


def test_two_processes_on_one_thread_are_one_line_that_says_who_holds_it(
    keeper: Locus, start: Start, here: Path, tools: str
) -> None:
    running = start("run", "Pay it.", "-m", "toy:pays", "-t", tools, "-q", "--thread", "t")
    appears(here / "charges")

    refused = keeper("run", "x", "-m", "toy:echo", "--thread", "t")
    resumed = keeper("threads", "resume", "t")
    deleted = keeper("threads", "delete", "t", "--yes")
    row = json.loads(keeper("threads", "--json").out)
    seen = keeper("threads", "show", "t")
    (here / "gate").touch()
    running.wait(PATIENCE)

    for done in (refused, resumed, deleted):
        assert done.status == 1
        assert len(done.lines) == 1
        assert f"thread 't' is busy: pid {running.pid}" in done.err
        assert " since 20" in done.err
    assert (row["status"], row["resumable"]) == ("running", False)
    assert f"pid {running.pid}" in row["holder"]
    assert row["since"] is not None
    assert f"thread t: running: pid {running.pid}" in seen.out
    assert thread_of(keeper, "ended") == "t"


@pytest.mark.usefixtures("killed")
def test_all_that_were_killed_go_on_and_the_others_are_left_alone(keeper: Locus, here: Path, tools: str) -> None:
    thread = thread_of(keeper, "crashed")
    keeper("run", "x", "-m", "toy:asks", "-t", tools, "-q", "--thread", "asks")
    keeper("run", "x", "-m", "toy:fails", "-q", "--thread", "fails")
    before = {row["thread_id"]: row["updated_at"] for row in listed(keeper)}

    done = keeper("resume", "--all")

    assert done.status == 0
    assert done.out == f"{thread}\tended: NoToolCalls\n"
    assert done.lines == [f"locus: 1 of 1, thread {thread}: Pay it."]
    assert (here / "notes").read_text() == (here / "charges").read_text() == "once\n"
    after = {row["thread_id"]: row["updated_at"] for row in listed(keeper)}
    assert {name for name in after if after[name] != before[name]} == {thread}
    assert keeper("resume", "--all").err.endswith("stopped in the middle\n")


@pytest.mark.usefixtures("killed")
def test_a_run_that_cannot_be_resumed_is_named_and_the_status_says_so(keeper: Locus) -> None:
    thread = thread_of(keeper, "crashed")

    done = keeper("resume", "--all", "-m", "toy:fails")

    assert done.status == 1
    assert done.out.startswith(f"{thread}\tfailed: ")


def test_runs_of_other_programs_are_left_to_them(keeper: Locus, here: Path) -> None:
    async def crash() -> None:
        async with SqliteStore(here / "mine.db") as store:
            crashing = CrashingStore("think", store=store)
            with pytest.raises(SimulatedCrash):
                await Agent(ScriptedModel("hi"), name="billing", checkpointer=crashing).run("Pay it.", thread_id="t")
            await crashing.revive()

    anyio.run(crash)
    store = ("--checkpointer", "mine.db")

    done = keeper("resume", "--all", *store)

    assert (done.status, done.out) == (0, "")
    assert done.lines == [
        "locus: 1 run of other programs left to them: `agent.threads.recover()` resumes those",
        "locus: no run in mine.db stopped in the middle",
    ]
    assert keeper("run", "x", "-m", "toy:echo", *store).err == ""
    assert [row["status"] for row in map(json.loads, keeper("threads", "--json", *store).out.splitlines())] == [
        "ended",
        "crashed",
    ]


def test_resume_wants_one_thread_or_all(keeper: Locus) -> None:
    for arguments in (["resume"], ["resume", "t", "--all"]):
        done = keeper(*arguments)
        assert (done.status, "name the ID of one thread, or --all" in done.err) == (2, True)
