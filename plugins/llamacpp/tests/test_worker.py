"""llama.cpp in a process of its own: nothing waits while it loads, and nothing hangs when it ends."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from locus_plugin_llamacpp import worker_process
from locus_plugin_llamacpp.engine import Engine, close_all
from locus_plugin_llamacpp.errors import BadRequest, EngineFailed
from locus_plugin_llamacpp.progress import show_waiting
from locus_plugin_llamacpp.runtime import EngineOptions
from locus_plugin_llamacpp.worker_process import WorkerServer, start_worker

from .doubles import END, PROMPT, USAGE, delta

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="named pipes and signals of POSIX")]
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}]}
CHUNKS = [PROMPT, delta("Hel"), delta("lo"), END, USAGE]

Make = Callable[..., Engine]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes an engine whose runtime does what is given."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "runtime_double")
    made: list[Engine] = []

    def make_engine(**script: Any) -> Engine:
        file = tmp_path / "model.json"
        file.write_text(json.dumps({"chunks": CHUNKS, **script}))
        made.append(Engine("llamacpp:x", lambda progress: file, EngineOptions(n_ctx=256)))
        return made[-1]

    yield make_engine
    for each in made:
        each.close()
    close_all()


async def test_event_loop_runs_while_a_load_holds_the_interpreters_lock(make: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    engine = make(gate=str(gate))
    beats: list[float | None] = []
    waited = anyio.Event()

    def see(seconds: float | None) -> None:
        beats.append(seconds)
        anyio.from_thread.run_sync(waited.set)

    async def open_gate() -> None:
        await waited.wait()
        for _ in range(3):  # each of them would come after the load
            await anyio.sleep(0.001)
        assert not engine.is_loaded
        await to_thread.run_sync(gate.write_bytes, b"")

    async with anyio.create_task_group() as group:
        group.start_soon(open_gate)
        await engine.prepare(waiting=see)

    assert engine.is_loaded
    assert beats[-1] is None
    assert all(isinstance(seconds, float) for seconds in beats[:-1])


async def test_answers_come_from_the_other_process(make: Make) -> None:
    seen: list[str] = []
    engine = make()

    async def take(chunk: dict[str, Any]) -> None:
        seen.append(chunk["choices"][0]["delta"]["content"])

    answer = await engine.chat(BODY, take)

    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}
    assert seen == ["Hel", "lo"]
    assert engine._server.pid != os.getpid()


async def refuse(chunk: dict[str, Any]) -> None:
    raise KeyError("enough")


async def test_cancelling_stops_the_generation_in_the_other_process(make: Make) -> None:
    engine = make(times=1_000_000)

    with anyio.CancelScope() as scope:

        async def take(chunk: dict[str, Any]) -> None:
            scope.cancel()

        await engine.chat(BODY, take)

    assert scope.cancelled_caught
    # The slot is free, and so is the worker.
    with pytest.raises(KeyError, match="enough"):
        await engine.chat(BODY, refuse)


async def test_cancelling_a_load_ends_its_process(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    started: list[WorkerServer] = []

    class Noted(WorkerServer):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)

    monkeypatch.setattr(worker_process, "WorkerServer", Noted)
    waited = anyio.Event()

    async with anyio.create_task_group() as group:
        engine = make(gate=str(gate))
        group.start_soon(lambda: engine.prepare(waiting=lambda _: anyio.from_thread.run_sync(waited.set)))
        await waited.wait()
        group.cancel_scope.cancel()

    assert not engine.is_loaded
    assert started[0].has_ended


@pytest.mark.parametrize(("name", "error"), [("ValueError", BadRequest), ("RuntimeError", EngineFailed)])
async def test_errors_of_the_runtime_are_raised_here(make: Make, name: str, error: type[Exception]) -> None:
    engine = make(raises=name)

    for _ in range(2):
        with pytest.raises(error, match="no such thing"):
            await engine.chat(BODY)


async def test_file_that_the_runtime_refuses_is_an_error_with_its_words(make: Make) -> None:
    with pytest.raises(EngineFailed, match=r"llama\.cpp cannot load .*model\.json \(a bad magic number\)"):
        await make(refuses="a bad magic number").prepare()


async def test_process_that_is_killed_is_an_error_and_the_next_request_starts_another(make: Make) -> None:
    engine = make(dies=signal.SIGKILL)

    for _ in range(2):
        with pytest.raises(EngineFailed, match=r"the process that runs llama\.cpp was ended by signal 9"):
            await engine.chat(BODY)


async def test_process_that_ends_while_it_loads_is_an_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_PROGRAM", "raise SystemExit(7)")

    with pytest.raises(EngineFailed, match=r"ended with status 7 while it loaded .*model\.json"):
        await make().prepare()


async def test_closing_an_engine_ends_its_process(make: Make) -> None:
    engine = make()
    await engine.prepare()
    server = engine._server

    await to_thread.run_sync(engine.close)

    assert server.has_ended


async def test_program_without_a_python_to_start_loads_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(worker_process, "start", lambda path, options: (path, options))

    options = EngineOptions()
    assert start_worker(tmp_path, options, lambda _: None) == (tmp_path, options)


#: Loads in another process, says which, and is killed.
ORPHAN = """
import os, signal, sys
from pathlib import Path
from locus_plugin_llamacpp.runtime import EngineOptions
from locus_plugin_llamacpp.worker_process import start_worker
server = start_worker(Path(sys.argv[1]), EngineOptions(n_ctx=256), lambda _: None)
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_worker_of_a_killed_process_ends(make: Make, tmp_path: Path) -> None:
    make()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The worker has the same standard error, which reads as ended when both are gone.
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN, str(tmp_path / "model.json")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == -signal.SIGKILL
    assert int(done.stdout) > 0


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_loading_is_shown_on_a_terminal_a_line_a_load() -> None:
    out = Screen()
    show = show_waiting("llamacpp:x", out)

    for seconds in (0.1, 0.2, 1.3, 1.4, None):
        show(seconds)

    assert out.getvalue() == "\rloading llamacpp:x: 0 s\rloading llamacpp:x: 1 s\rloaded llamacpp:x in 2 s   \n"


def test_loading_is_not_shown_where_nobody_looks() -> None:
    out = io.StringIO()
    show = show_waiting("llamacpp:x", out)

    for seconds in (0.1, 1.3, None):
        show(seconds)

    assert out.getvalue() == ""
