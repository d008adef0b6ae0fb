"""A process with a store of its own, which does what it is told line by line; run as a program by `Child`."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import anyio.to_thread

from locus.core.errors import LocusError, ThreadBusy
from locus.core.journal import Outcome, StepId
from locus.journal.store import Claim
from locus_plugin_sqlite import SqliteStore


class Child:
    """Another process, told what to do through a pipe."""

    def __init__(self, path: Path, **options: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(path), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process.poll() is None:
            self.resume()
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def tell(self, do: str, **arguments: Any) -> None:
        """Ask, and do not wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """The answer to the oldest question."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    def ask(self, do: str, **arguments: Any) -> Any:
        """Ask, and wait."""
        self.tell(do, **arguments)
        return self.hear()

    def kill(self, *, reap: bool = True) -> None:
        """SIGKILL; without `reap` it stays behind as a zombie, as under a parent that never asks."""
        os.kill(self.pid, signal.SIGKILL)
        if reap:
            self._process.wait()
        else:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def stop(self) -> None:
        """SIGSTOP, and wait until it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def leave(self) -> int:
        """Let it end by itself; gives its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait()


def step(number: int, size: int = 0) -> Outcome:
    """An entry."""
    return Outcome(run_id="run", step_id=StepId(0, "step", number), value="x" * size)


# -- in the other process -------------------------------------------------------------------------


class _Skewed:
    def __init__(self, seconds: float) -> None:
        self._by = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._by

    def monotonic(self) -> float:  # pragma: no cover - a store asks for the date only
        raise NotImplementedError


class _Worker:
    def __init__(self, path: str, options: dict[str, Any]) -> None:
        clock = _Skewed(options.pop("skew", 0.0))
        self.store = SqliteStore(path, clock=clock, **options)
        self.claims: dict[str, Claim] = {}

    async def claim(self, thread: str) -> Any:
        claim = await self.store.claim(thread, f"pid {os.getpid()}")
        self.claims[thread] = claim
        return {"head": claim.head, "token": claim.token}

    async def append(self, thread: str, numbers: list[int], size: int = 0) -> Any:
        return (await self.store.append(self.claims[thread], [step(n, size) for n in numbers])).value

    async def renew(self, thread: str) -> Any:
        return await self.store.renew(self.claims[thread])

    async def release(self, thread: str) -> Any:
        await self.store.release(self.claims[thread])

    async def read(self, thread: str) -> Any:
        return [
            str(entry.body.step_id.ordinal)
            for entry in await self.store.read(thread)
            if isinstance(entry.body, Outcome)
        ]

    async def threads(self) -> Any:
        return [[info.thread_id, info.head, info.holder] for info in await self.store.threads()]

    async def limit(self, size: int) -> Any:
        """Files may not grow beyond this."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def _answer(worker: _Worker, question: dict[str, Any]) -> Any:
    do: Callable[..., Any] = getattr(worker, question.pop("do"))
    try:
        return await do(**question)
    except ThreadBusy as e:
        return {"error": "ThreadBusy", "message": str(e), "holder": e.holder, "since": e.since}
    except LocusError as e:
        return {"error": type(e).__name__, "message": str(e)}


async def _main() -> None:
    worker = _Worker(sys.argv[1], json.loads(sys.argv[2]))
    async with worker.store:
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            print(json.dumps(await _answer(worker, json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    anyio.run(_main)
