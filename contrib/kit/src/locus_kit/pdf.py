"""`read_pdf`: the text of a PDF, within bounds of pages, characters, time and memory.

A PDF is a program of sorts, and its reader is written in Python: a hostile file takes minutes and gigabytes. So it
is read in a process of its own, which is killed when the time is up or the caller is cancelled; what it has read
by then counts. That process has no environment, and imports nothing from the working directory.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import anyio.to_thread
from attrs import field, frozen

from locus_kit.invisible import remove_invisible
from locus_kit.validators import integer, optional, seconds

__all__ = ["PdfBounds", "PdfError", "PdfMissing", "PdfText", "is_pdf", "read_pdf", "read_pdf_sync"]

_PROGRAM = Path(__file__).with_name("pdf_program.py")
#: Seconds between the time at which the process should stop by itself, and the one at which it is killed.
_GRACE = 2.0
_UNLIMITED = 2**60

#: Why nothing was read.
_FAULTS = {
    "encrypted": "it is encrypted, and needs a password",
    "memory": "it takes more memory than a PDF may",
    "seconds": "it takes more time than a PDF may",
    "damaged": "it is damaged, or not a PDF",
}


class PdfError(ValueError):
    """Nothing of a PDF can be read; the text says why, as the end of a sentence about the file."""


class PdfMissing(PdfError):
    """The library that reads PDF is not installed.

    Args:
        distribution: the one whose extra ``pdf`` brings it.
    """

    def __init__(self, distribution: str) -> None:
        super().__init__(f'it is a PDF, and reading these needs a library; run: pip install "{distribution}[pdf]"')


@frozen(kw_only=True)
class PdfBounds:
    """How much of a PDF is read, and what that may take.

    Args:
        pages: how many of its first pages.
        chars: characters of text.
        lines: it ends with the page that has this line; None = at any.
        seconds: in all; the process is killed two seconds later.
        memory: bytes that the process may use, where the system counts them.
    """

    pages: int = field(default=500, validator=integer(1))
    chars: int = field(default=1_000_000, validator=integer(1))
    lines: int | None = field(default=None, validator=optional(integer(1)))
    seconds: float = field(default=15.0, validator=seconds)
    memory: int = field(default=1_000_000_000, validator=integer(100_000_000))


@frozen(kw_only=True)
class PdfText:
    """What a PDF says.

    Args:
        title: one line, or ``""``.
        pages: the text of each page that was read; None for one that could not be.
        stopped: what ended the reading before the last page: a field of `PdfBounds`, or ``"damaged"``; ``""``: nothing.
    """

    title: str
    pages: tuple[str | None, ...]
    stopped: str = ""

    @property
    def text(self) -> str:
        """The pages under their numbers, in lines ``[page 1]``."""
        shown = (
            f"[page {number}]\n{'(this page cannot be read)' if page is None else page}".rstrip()
            for number, page in enumerate(self.pages, 1)
        )
        return "\n".join(shown)


def is_pdf(start: bytes) -> bool:
    """Whether a file that begins like this is a PDF."""
    return b"%PDF-" in start[:1_024]


def read_pdf_sync(data: bytes, distribution: str, bounds: PdfBounds | None = None) -> PdfText:
    """As `read_pdf`, from a thread.

    Args:
        data: the file.
        distribution: the one whose extra an error names.
        bounds: how much is read; None = the defaults.

    Raises:
        PdfMissing: pypdf is not installed.
        PdfError: nothing can be read.
    """
    return _Reading(data, distribution, PdfBounds() if bounds is None else bounds).read()


async def read_pdf(data: bytes, distribution: str, bounds: PdfBounds | None = None) -> PdfText:
    """The text of a PDF. Cancelling it ends the process that reads.

    Args:
        data: the file.
        distribution: the one whose extra an error names, such as ``"locus-plugin-web"``.
        bounds: how much is read; None = the defaults.

    Raises:
        PdfMissing: pypdf is not installed.
        PdfError: nothing can be read: the file is damaged or encrypted, or takes too much time or memory.
    """
    reading = _Reading(data, distribution, PdfBounds() if bounds is None else bounds)
    try:
        return await anyio.to_thread.run_sync(reading.read, abandon_on_cancel=True)
    except BaseException:
        reading.stop()
        raise


class _Reading:
    """A process that reads, from the thread that waits for it."""

    def __init__(self, data: bytes, distribution: str, bounds: PdfBounds) -> None:
        self._data, self._bounds, self._argv = data, bounds, _argv(distribution, bounds)
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def read(self) -> PdfText:
        """What the process says, until it ends or the time is up."""
        with self._lock:
            if self._is_stopped:
                raise PdfError("the reading was cancelled")
            pipe = subprocess.PIPE
            self._process = process = subprocess.Popen(  # noqa: S603 - this Python, and a program of this package
                self._argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env={}
            )
        stopped = "damaged"  # where it died before it could say: of a signal, or of memory that C code did not get
        with process:
            try:
                out, _ = process.communicate(self._data, timeout=self._bounds.seconds + _GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
                stopped = "seconds"
            except BaseException:
                process.kill()
                raise
        return _parse(out, stopped)

    def stop(self) -> None:
        """Kill the process; the thread sees its end."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()


def _argv(distribution: str, bounds: PdfBounds) -> list[str]:
    found = importlib.util.find_spec("pypdf")
    if found is None or found.origin is None:
        raise PdfMissing(distribution)
    if not sys.executable or getattr(sys, "frozen", False):
        raise PdfError("it is a PDF, and reading these needs a Python interpreter to start")
    wanted = {
        "folders": [str(Path(found.origin).absolute().parent.parent)],
        "pages": bounds.pages,
        "chars": bounds.chars,
        "lines": _UNLIMITED if bounds.lines is None else bounds.lines,
        "seconds": bounds.seconds,
        "memory": bounds.memory,
    }
    return [sys.executable, "-I", "-S", str(_PROGRAM), json.dumps(wanted)]


def _parse(out: bytes, stopped: str) -> PdfText:
    """What the process has said.

    Args:
        out: its lines.
        stopped: why it ended, where it did not say so.
    """
    title = ""
    pages: list[str | None] = []
    for line in _lines(out):
        title = line.get("title", title)
        if "page" in line:
            pages.append(None if line["page"] is None else _clean(line["page"]))
        stopped = line.get("end", stopped)
    if stopped in _FAULTS and not any(pages):
        raise PdfError(_FAULTS[stopped])
    return PdfText(title=remove_invisible(title), pages=tuple(pages), stopped=stopped)


def _lines(out: bytes) -> Iterator[dict[str, Any]]:
    for line in out.splitlines():
        with suppress(ValueError):  # the last one, of a process that was killed
            yield json.loads(line)


def _clean(text: str) -> str:
    text = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return remove_invisible(text.encode(errors="replace").decode())
