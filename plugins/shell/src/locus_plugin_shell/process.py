"""One process from start to end: its output is kept at both ends, and it is killed when its caller stops waiting."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

import anyio
from anyio.abc import ByteReceiveStream, Process
from attrs import define, field, frozen

__all__ = ["CommandResult", "Output", "run_process"]

#: Seconds in which what is left in the pipes of a killed process is read.
_DRAIN = 5.0


@frozen(kw_only=True)
class CommandResult:
    """How a command ended.

    Args:
        code: its exit code, negative for the number of a signal; None when it did not end by itself.
        why: why it did not: ``"timeout"``, or the limit that it exceeded, ``"memory"`` or ``"processes"``.
        output: what it wrote, standard output and standard error as they came; a long one without its middle.
        omitted: how many bytes of the output were left out.
    """

    code: int | None
    why: str = ""
    output: str = ""
    omitted: int = 0


@define
class Output:
    """The beginning and the end of what a process writes.

    Args:
        most: how many bytes are kept.
    """

    most: int
    head: bytearray = field(factory=bytearray, init=False)
    tail: bytearray = field(factory=bytearray, init=False)
    size: int = field(default=0, init=False)

    def add(self, data: bytes) -> None:
        """Take in what was written next."""
        self.size += len(data)
        half = self.most // 2
        room = half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * half:
            del self.tail[: len(self.tail) - half]

    @property
    def gap(self) -> int:
        """How many bytes are not kept."""
        return max(0, self.size - len(self.head) - min(len(self.tail), self.most // 2))

    def text(self) -> str:
        """What was kept, with a line where something is missing."""
        tail = bytes(self.tail[-(self.most // 2) :])
        if not self.gap:
            return (bytes(self.head) + tail).decode("utf-8", "replace")
        missing = f"\n[... {self.gap:,} bytes of the output are left out here ...]\n"
        return bytes(self.head).decode("utf-8", "replace") + missing + tail.decode("utf-8", "replace")


async def run_process(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, seconds: float, out: Output, err: Output
) -> int | None:
    """Run a process to its end, at most so many seconds; then, and when this is cancelled, it is killed.

    Its standard input is a pipe that stays open as long as this program lives.

    Args:
        argv: the program and its arguments.
        env: its whole environment.
        cwd: its directory; None = that of this process.
        seconds: how long it may take.
        out: takes in what it writes.
        err: takes in what it writes to standard error.

    Returns:
        Its exit code, negative for a signal; None when it took too long.

    Raises:
        OSError: it cannot be started.
    """
    process = await anyio.open_process(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    code: int | None = None
    try:
        async with anyio.create_task_group() as readers:
            readers.start_soon(_read, process.stdout, out)
            readers.start_soon(_read, process.stderr, err)
            with anyio.move_on_after(seconds):
                code = await process.wait()
            _kill(process)
            # What the process has written is in the pipes; another process that holds them open is not waited for long.
            readers.cancel_scope.deadline = anyio.current_time() + _DRAIN
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.wait()
            await process.aclose()
    return code


async def _read(stream: ByteReceiveStream | None, output: Output) -> None:
    assert stream is not None
    with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            output.add(await stream.receive())


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
