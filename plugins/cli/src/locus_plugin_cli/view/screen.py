"""`Screen`: text that scrolls, with one status line below it on a terminal.

Whatever else writes meanwhile (a provider that prepares a model, a library that warns, a tool that prints) goes
through the screen too, so that it neither tears the text nor is torn by the status.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich.cells import cell_len, set_cell_size

from locus_plugin_cli.output import Output
from locus_plugin_cli.streams import foreign_text, standard
from locus_plugin_cli.text import format_ms, one_line

__all__ = ["Screen"]

#: Seconds between two pictures of the status, and before the first: what is quick needs none.
_TICK = 0.12
_DELAY = 0.25
_FRAMES = "|/-\\"


class Screen:
    """Writes text; plain, and without a status, if the output is not a terminal.

    Args:
        clock: seconds, for the time that the status shows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = Output()
        self._lock = threading.RLock()
        self._clock = clock
        self._label = ""
        #: What another thread adds to it, see `_Tap`.
        self._aside = ""
        self._since = 0.0
        self._drawn = False
        self._frame = 0
        self._ticker: threading.Thread | None = None
        self._quit = threading.Event()
        #: The cursor is at the beginning of a line.
        self._fresh = True

    @property
    def live(self) -> bool:
        """Whether this is a terminal on which a line can be rewritten."""
        return self._output.is_live

    def can(self, text: str) -> bool:
        """Whether the output's encoding has these characters."""
        try:
            text.encode(self._output.stream.encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    # -- text -------------------------------------------------------------------------------------

    def write(self, text: str, style: str = "") -> None:
        """Write a piece of text where the last one ended."""
        if not text:
            return
        with self._lock:
            self._erase()
            self._output.piece(text, style)
            self._fresh = text.endswith("\n")

    def end_line(self) -> None:
        """Begin a new line unless the last one has ended."""
        if not self._fresh:
            self.write("\n")

    def line(self, text: str, style: str = "") -> None:
        """Write whole lines."""
        with self._lock:
            self.end_line()
            self.write(f"{text}\n", style)

    # -- status -----------------------------------------------------------------------------------

    def status(self, label: str) -> None:
        """What is going on, shown with the time that it takes until the next text; ``""`` = nothing."""
        with self._lock:
            if label != self._label:
                self._label, self._since = label, self._clock()
                if not label:
                    self._erase()

    def aside(self, text: str) -> None:
        """Show something in place of the status, such as progress that a library reports; ``""`` = no more."""
        with self._lock:
            if not self._label and not self._aside:
                self._since = self._clock()
            self._aside = text

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the terminal: the status ticks, and the output of other code goes through the screen."""
        if not self.live:
            yield
            return
        self._quit.clear()
        self._ticker = threading.Thread(target=self._tick, name="locus status", daemon=True)
        self._ticker.start()
        before = sys.stdout, sys.stderr
        # The output of a tool is not part of the result.
        sys.stdout = cast("TextIO", _Tap(self, before[0]))
        if before[1].isatty():
            sys.stderr = cast("TextIO", _Tap(self, before[1]))
        try:
            yield
        finally:
            standard().settle()
            sys.stdout, sys.stderr = before
            self._quit.set()
            self._ticker.join()
            self._aside = ""
            self.status("")
            self.wipe()

    def wipe(self) -> None:
        """Remove what the terminal itself put on an empty line, such as the ``^C`` of Ctrl-C."""
        with self._lock:
            if self.live and self._fresh:
                self._drawn = False
                self._output.rewrite()

    def _tick(self) -> None:
        while not self._quit.wait(_TICK):
            with self._lock:
                try:
                    self._draw()
                except OSError:
                    return  # the terminal went away; the next write reports it

    def _draw(self) -> None:
        passed = self._clock() - self._since
        label = self._aside or self._label
        if not label or not self._fresh or passed < _DELAY:
            return
        self._frame += 1
        text = f"{_FRAMES[self._frame % len(_FRAMES)]} {one_line(label)}  {format_ms(passed * 1000)}"
        width = max(1, self._output.width - 1)
        shown = set_cell_size(text, width) if cell_len(text) > width else text
        self._output.rewrite(shown)
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._drawn = False
            self._output.rewrite()


class _Tap:
    """Stands in for a standard stream: whole lines become lines of the screen, an unfinished one its status."""

    def __init__(self, screen: Screen, before: TextIO) -> None:
        self._screen, self._before = screen, before
        self._rest = ""

    def write(self, text: str) -> int:
        """Take text as `TextIO.write` does."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            # What was rewritten in place counts as it was last.
            self._screen.line(foreign_text(line.rpartition("\r")[2]), style="dim")
        self._rest = self._rest.rpartition("\r")[2]
        self._screen.aside(foreign_text(self._rest).strip())
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Take several texts."""
        self.write("".join(lines))

    def flush(self) -> None:
        """Nothing is held back."""

    def __getattr__(self, name: str) -> Any:
        # isatty, encoding, fileno, ...: as the real one has them.
        return getattr(self._before, name)
