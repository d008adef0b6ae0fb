"""One command, from start to end: no shell, nothing on its input, and nothing of it left when it is over.

It gets a process group of its own, so that what it has started goes with it: when it takes too long, when the run is
cancelled, and when it ends and leaves children behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
from attrs import frozen

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process

__all__ = ["CommandResult", "run_command"]

#: Bytes of the end of an output that are kept while it runs.
_MOST = 1_000_000
#: Seconds in which what is left in the pipe of a dead process is read.
_DRAIN = 1.0


@frozen
class CommandResult:
    """How a command ended.

    Args:
        code: its exit code, negative for a signal; None when it took too long.
        output: the end of what it wrote, both channels.
    """

    code: int | None
    output: str


async def run_command(
    argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], seconds: float, tail: int
) -> CommandResult:
    """Run a command to its end.

    Args:
        argv: the program and its arguments.
        cwd: its directory.
        env: its whole environment.
        seconds: after which it is killed, with everything that it has started.
        tail: characters of the end of its output that are wanted.

    Raises:
        OSError: it cannot be started.
    """
    process = await anyio.open_process(
        list(argv),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    kept, drained = bytearray(), anyio.Event()
    code: int | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process.stdout, kept, drained)
            with anyio.move_on_after(seconds):
                code = await process.wait()
            # Whatever holds the pipe open now is not the command.
            _kill(process)
            with anyio.move_on_after(_DRAIN):
                await drained.wait()
            group.cancel_scope.cancel()
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.wait()
            await process.aclose()
    text = bytes(kept).decode("utf-8", "replace")
    return CommandResult(code, text[len(text) - tail :] if tail < len(text) else text)


async def _read(stream: ByteReceiveStream | None, kept: bytearray, drained: anyio.Event) -> None:
    assert stream is not None
    with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            kept += await stream.receive()
            if len(kept) > 2 * _MOST:
                del kept[:-_MOST]
    drained.set()


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows has no groups of this kind
            process.kill()
