"""The standard streams: all text on its way to the terminal passes through here.

A terminal obeys control sequences. So while a command runs, `sys.stdout` and `sys.stderr` are a `GuardedStream` each:
on a terminal, what any code writes to them (this package, click, a plugin's command, a tool's ``print``, a traceback)
is escaped, and only `Output` and `Screen`, which escape the text and add colours of their own, have a way around that.
A stream that is not a terminal is left as it is.

Below Python, a tool may write too: a library in C, a program that it starts. `Streams.claim` and `Streams.divert`
therefore move the stream itself to another file number, and put something else in its old place:

- `claim`, for output that a program reads (``--json``, ``--quiet``): number 1 becomes standard error.
- `divert`, where code of others runs and a terminal is there: its numbers become a pipe, whose text goes to the screen
  through the same guard. While a person is asked, the terminal is back in place, because ``input`` needs it there.

This module is loaded before anything can go wrong, so it imports neither the kernel nor rich.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TextIO, cast

from locus_kit.invisible import escape_invisible

__all__ = ["GuardedStream", "Streams", "confirm", "foreign_text", "print_error", "say", "standard"]

#: Bytes taken from the pipe at a time.
_BLOCK = 65_536

#: Seconds to wait for the rest of the text in the pipe.
_PATIENCE = 2.0

# Colours of a library that sees a terminal: they are left out, because escaped they would hide the text.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")


def foreign_text(text: str) -> str:
    """Text of others as a terminal may have it: without colours, everything else that is invisible escaped."""
    return escape_invisible(_COLOURS.sub("", text.replace("\r\n", "\n")))


class GuardedStream(io.TextIOBase):
    """A standard stream that escapes what is written to it if it is a terminal.

    Args:
        stream: where to.
        rewrites: a carriage return restarts the line, as progress output needs, instead of being escaped.
    """

    def __init__(self, stream: TextIO, *, rewrites: bool = False) -> None:
        self._stream = stream
        self._original = stream
        self._rewrites = rewrites
        self._lock = threading.RLock()
        self.is_terminal = _is_terminal(stream)
        #: The stream without the guard: for text that is escaped, and for the codes of colours around it.
        self.trusted: TextIO = cast("TextIO", _Trusted(self))

    # -- the interface of text streams ----------------------------------------------------------------------

    def write(self, text: str, /) -> int:
        """Take text as `TextIO.write` does."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            self._stream.write(self._shown(text) if self.is_terminal else text)
        return len(text)

    def _shown(self, text: str) -> str:
        if not self._rewrites or "\r" not in text:
            return foreign_text(text)
        lines = []
        for line in text.replace("\r\n", "\n").split("\n"):
            before, again, last = line.rpartition("\r")
            # The whole line goes, so that nothing can be written over a part of it.
            lines.append(f"\r\x1b[2K{foreign_text(last)}" if again else foreign_text(before + last))
        return "\n".join(lines)

    def flush(self) -> None:
        """Write what is buffered."""
        if not self._stream.closed:
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self.is_terminal

    def fileno(self) -> int:
        """The number of the standard stream, even while something else takes its place."""
        return self._original.fileno()

    def writable(self) -> bool:
        """It is."""
        return True

    def reconfigure(self, **options: Any) -> None:
        """Change the stream as `io.TextIOWrapper.reconfigure` does; without effect where it is another kind."""
        reconfigure = getattr(self._stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(**options)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The handling of characters that the encoding does not have."""
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        """For bytes: the stream's own if it is not a terminal, else one that decodes and escapes them."""
        return _Bytes(self) if self.is_terminal else self._stream.buffer

    # -- what `Streams` uses ----------------------------------------------------------------------

    @property
    def stream(self) -> TextIO:
        """Where it writes to at the moment."""
        return self._stream

    @property
    def number(self) -> int | None:
        """The file number of the stream as it was at the beginning; None for one in memory."""
        with suppress(OSError, ValueError):
            return self._original.fileno()
        return None

    @property
    def is_moved(self) -> bool:
        """Whether it writes to another number than it did at the beginning."""
        return self._stream is not self._original

    def move(self) -> None:
        """From now on write to a file number of its own, which no other code knows."""
        self.flush()
        if not self.is_moved:
            self._stream = open(  # noqa: PTH123, SIM115  # as long as the process
                os.dup(self._original.fileno()),
                "w",
                encoding=self.encoding,
                errors="backslashreplace",
                buffering=1 if self.is_terminal else -1,
            )

    def move_back(self) -> None:
        """Write to the original again."""
        if self.is_moved:
            with suppress(OSError, ValueError):
                self._stream.close()
            self._stream = self._original


def _is_terminal(stream: TextIO) -> bool:
    with suppress(OSError, ValueError):
        return stream.isatty()
    return False


class _Trusted(io.TextIOBase):
    """The way around the guard of a stream."""

    def __init__(self, guard: GuardedStream) -> None:
        self._guard = guard

    def write(self, text: str, /) -> int:
        return self._guard.stream.write(text)

    def flush(self) -> None:
        self._guard.flush()

    def isatty(self) -> bool:
        return self._guard.is_terminal

    def fileno(self) -> int:
        return self._guard.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._guard.encoding


class _Bytes(io.RawIOBase):
    """Takes bytes for a guarded terminal."""

    def __init__(self, guard: GuardedStream) -> None:
        self._guard = guard
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._guard.write(self._decoder.decode(bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._guard.flush()


class Streams:
    """Both streams of one command line; a context manager that restores the originals.

    Attributes:
        out: the output, for the result of the command.
        err: for messages.
    """

    def __init__(self) -> None:
        self._before = (sys.stdout, sys.stderr)
        self.out = GuardedStream(sys.stdout)
        self.err = GuardedStream(sys.stderr, rewrites=True)
        self._is_claimed = False
        self._pump: _Pump | None = None
        #: The numbers that the pipe is in the place of.
        self._diverted: frozenset[int] = frozenset()

    def install(self) -> None:
        """Become the standard streams."""
        sys.stdout, sys.stderr = cast("TextIO", self.out), cast("TextIO", self.err)
        _installed.append(self)

    def __enter__(self) -> Streams:
        self.install()
        return self

    def __exit__(self, *failed: object) -> None:
        _installed.remove(self)
        with suppress(OSError, ValueError):
            self.settle()
        for number, guard in ((1, self.out), (2, self.err)):
            if guard.is_moved:
                with suppress(OSError, ValueError):
                    guard.flush()
                os.dup2(guard.stream.fileno(), number)
                guard.move_back()
        if self._pump is not None:
            self._pump.close()
        sys.stdout, sys.stderr = self._before

    def claim(self) -> None:
        """Reserve the output for this package: anything that other code prints goes to standard error."""
        if self._is_claimed:
            return
        self._is_claimed = True
        with suppress(OSError, ValueError):
            self.out.flush()
        if self.out.number == 1 and self._pump is None:
            self.out.move()
            os.dup2(2, 1)
        sys.stdout = cast("TextIO", self.err)

    def divert(self) -> None:
        """Guard what foreign code writes to a terminal below Python, from now on."""
        if os.name == "nt" or self._pump is not None:
            return
        numbers = {number for number, guard in ((1, self.out), (2, self.err)) if guard.number == number}
        if self._is_claimed:
            # Number 1 is standard error.
            shown = numbers if self.err.is_terminal and 2 in numbers else set()
        else:
            shown = {number for number in numbers if (self.out if number == 1 else self.err).is_terminal}
        if not shown:
            return
        for number in shown:
            (self.out if number == 1 else self.err).move()
        self._diverted = frozenset(shown)
        self._pump = _Pump(lambda: sys.stderr if 2 in shown else sys.stdout)
        self._pump.take(self._diverted)

    @contextmanager
    def prompting(self) -> Iterator[None]:
        """While a person types: the terminal is where ``input`` looks for it."""
        if self._pump is None:
            yield
            return
        self.settle()
        for number in self._diverted:
            os.dup2((self.out if number == 1 else self.err).stream.fileno(), number)
        try:
            yield
        finally:
            self._pump.take(self._diverted)

    def settle(self) -> None:
        """Wait until the output of other code is shown."""
        for stream in (sys.__stdout__, sys.__stderr__):
            with suppress(OSError, ValueError, AttributeError):
                cast("TextIO", stream).flush()
        if self._pump is not None:
            with suppress(Exception):
                # What a library in C has printed may still be in its own buffer.
                getattr(import_module("ctypes"), "CDLL")(None).fflush(None)  # noqa: B009
            self._pump.settle()

    def abandon(self) -> None:
        """Drop the output, whose reader is gone: buffered text must not raise when the interpreter flushes it."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (self.out.stream, self.err.stream, *self._before):
            with suppress(OSError, ValueError):
                stream.flush()
                continue
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())


class _Pump:
    """A pipe in place of a terminal, and the thread that shows its contents.

    Args:
        sink: the stream that shows it.
    """

    def __init__(self, sink: Callable[[], TextIO]) -> None:
        self._sink = sink
        self._reader, self._writer = os.pipe()
        self._lock = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        threading.Thread(target=self._show, name="locus output", daemon=True).start()

    def take(self, numbers: Iterable[int]) -> None:
        """Put the pipe in the place of these file numbers."""
        for number in numbers:
            os.dup2(self._writer, number)

    def settle(self) -> None:
        """Wait until it is empty."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with self._lock:
                if not select.select([self._reader], [], [], 0)[0]:
                    return
            time.sleep(0.001)

    def close(self) -> None:
        """Take nothing more; the thread ends with the last program that still has the pipe."""
        os.close(self._writer)

    def _show(self) -> None:
        while True:
            select.select([self._reader], [], [])
            # Under the lock from the reading to the end of the writing: `settle` sees neither half of it.
            with self._lock:
                data = os.read(self._reader, _BLOCK)
                if not data:
                    os.close(self._reader)
                    return
                # A terminal that went away: who writes to the pipe must not wait for it.
                with suppress(Exception):
                    sink = self._sink()
                    sink.write(self._decoder.decode(data))
                    sink.flush()


#: Those of the command line under way.
_installed: list[Streams] = []


def standard() -> Streams:
    """The streams of the command line under way; outside of one, those of the process as they are."""
    return _installed[-1] if _installed else Streams()


def say(text: str) -> None:
    """Print a message for the person on standard error: standard output is for results."""
    print_error("".join(f"locus: {line}\n" for line in text.splitlines()))


def confirm(question: str) -> bool:
    """Ask the person at the terminal; anything but a yes is a no."""
    streams = standard()
    with streams.prompting():
        streams.err.write(f"{escape_invisible(question)} [y/N] ")
        streams.err.flush()
        try:
            return input().strip().casefold() in ("y", "yes")
        except EOFError:
            streams.err.write("\n")
            return False


def print_error(text: str) -> None:
    """Write text to standard error; the text has its own line ends."""
    err = standard().err
    err.write(escape_invisible(text))
    err.flush()
