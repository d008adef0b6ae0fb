"""Real deaths: a process that kills itself with SIGKILL in one of the writes to its store, and another that goes on.

`CrashingStore` plays a death in the process of the test, which is quick. Here the process is really gone, with its
threads and what it had not flushed; a store in files is needed. Each process is forked from one that has imported
everything, so a death costs milliseconds. Fork before anything has started a thread: run this in a program of its own,
``subprocess.run([sys.executable, "-m", ...])``, and not in the process of pytest.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from attrs import define, frozen

__all__ = ["Killed", "every_kill", "let_die"]

Store = TypeVar("Store", bound=type[Any])


@define
class _Point:
    """In which of its writes this process dies, and how many it has made."""

    at: int = 0
    stored: bool = False
    writes: int = 0

    def pass_by(self, *, stored: bool) -> None:
        self.writes += not stored
        if self.writes == self.at and stored == self.stored:
            os.kill(os.getpid(), signal.SIGKILL)


_POINT = _Point()


async def _die_around(write: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
    _POINT.pass_by(stored=False)
    made = await write(*arguments, **options)
    _POINT.pass_by(stored=True)
    return made


def let_die(store: Store) -> Store:
    """Make a class of stores whose process dies where `every_kill` says: before one of its writes, or after it.

    Args:
        store: a class of stores, the writes of which are ``append``, ``snapshot`` and maybe ``post``; and those of a
            queue, with what ends its offers.
    """
    base: Any = store

    class Dying(base):  # type: ignore[misc]  # any class of stores
        async def append(self, *arguments: Any, **options: Any) -> Any:
            return await _die_around(super().append, *arguments, **options)

        def post(self, *arguments: Any, **options: Any) -> Any:
            _POINT.pass_by(stored=False)
            made = super().post(*arguments, **options)
            _POINT.pass_by(stored=True)
            return made

        async def submit(self, *arguments: Any, **options: Any) -> Any:
            return await _die_around(super().submit, *arguments, **options)

        async def forget_signals(self, *arguments: Any, **options: Any) -> Any:
            return await _die_around(super().forget_signals, *arguments, **options)

        async def take(self, *arguments: Any, **options: Any) -> Any:
            offer = await _die_around(super().take, *arguments, **options)
            if offer is not None:
                offer.done = partial(_die_around, offer.done)
                offer.back = partial(_die_around, offer.back)
            return offer

        async def snapshot(self, *arguments: Any, **options: Any) -> Any:
            return await _die_around(super().snapshot, *arguments, **options)

    made: Store = Dying  # type: ignore[assignment]  # as above
    return made


@frozen(kw_only=True)
class Killed:
    """What came of one death.

    Args:
        folder: where the processes have kept their files.
        at: in which write the first one was to die, from 1.
        stored: after that write, and not before it.
        died: whether it did: what follows a write that is begun inside of another one may come before its end.
        result: what the run came to, in the first process or the second one; None if the second one has failed.
        wanted: the same of a run that nothing has disturbed.
    """

    folder: Path
    at: int
    stored: bool
    died: bool
    result: Any
    wanted: Any


def every_kill(
    folder: Path,
    go: Callable[[Path], Awaitable[Any]],
    *,
    stride: int = 1,
    backend: str = "asyncio",
    from_end: bool = False,
) -> Iterator[Killed]:
    """Kill a process in each of its writes, before and after it, and let another one go on.

    Args:
        folder: for the files of all of them.
        go: runs something to its end, or goes on with it, with a store of `let_die` in the folder that it is given;
            what it returns has a JSON form.
        stride: every which write.
        backend: the event loop.
        from_end: the last write first, where that is what is broken.

    Raises:
        AssertionError: the run that nothing disturbs has failed, or writes nothing.
    """
    whole = _fork(_make(folder / "whole"), go, _Point(), backend)
    assert whole is not None, "the run that nothing disturbs has failed; its error is on standard error"
    wanted, writes = whole["result"], whole["writes"]
    for name in whole["modules"]:  # so that no other process has to import what is imported on first use
        with suppress(Exception):
            importlib.import_module(name)
    assert writes, "nothing was written; make the store of a class that let_die gives"
    for at in range(writes, 0, -stride) if from_end else range(1, writes + 1, stride):
        for stored in (False, True):
            place = _make(folder / f"{at}{'-stored' if stored else ''}")
            first = _fork(place, go, _Point(at, stored), backend)
            ended = _fork(place, go, _Point(), backend) if first is None else first
            result = None if ended is None else ended["result"]
            yield Killed(folder=place, at=at, stored=stored, died=first is None, result=result, wanted=wanted)


def _make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _fork(folder: Path, go: Callable[[Path], Awaitable[Any]], point: _Point, backend: str) -> Any:
    """What a process of its own comes to; None where it was killed, or has failed."""
    out = folder / "result.json"
    pid = os.fork()
    if not pid:
        status = 1
        try:
            _POINT.at, _POINT.stored, _POINT.writes = point.at, point.stored, 0
            result = anyio.run(go, folder, backend=backend)
            modules = [name for name in sys.modules if name != "__main__"]
            out.write_text(json.dumps({"result": result, "writes": _POINT.writes, "modules": modules}))
            status = 0
        except BaseException:  # noqa: BLE001 - it must not go on as a copy of the process above
            traceback.print_exc()
        finally:
            os._exit(status)
    os.waitpid(pid, 0)
    return json.loads(out.read_text()) if out.exists() else None
