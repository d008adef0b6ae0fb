"""Shows the progress of a fetch, which takes seconds or minutes and must not look like a hang."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["Progress", "show_progress", "silent"]

#: Called with (bytes done, bytes in total), several times a second; it may raise to give up.
Progress = Callable[[int, int], None]

_MEGA = 1_000_000
_LINES = 4  # outside of a terminal: one at the beginning and one at each quarter
_SETTLED = 0.5  # seconds before a rate means something


def silent(done: int, total: int) -> None:
    """The progress callback that shows nothing."""


def show_progress(label: str, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> Progress:
    """A progress callback that writes one line, rewritten at each percent on a terminal; elsewhere a line a quarter.

    Args:
        label: what is fetched.
        out: where to; None = standard error, as it is when the callback is called.
        clock: gives seconds; the rate is counted from the first call, so what was there before does not count.
    """
    last, first = -1, (0.0, 0)

    def progress(done: int, total: int) -> None:
        nonlocal last, first
        stream = sys.stderr if out is None else out
        now, percent = clock(), 100 * done // total if total else 100
        if last < 0:
            first = now, done
        on_terminal = stream.isatty()
        step, before = (percent, last) if on_terminal else (percent * _LINES // 100, last * _LINES // 100)
        if last >= 0 and step <= before:
            return
        last = percent
        text = f"fetching {label} (once): {done // _MEGA} of {total // _MEGA} MB"
        if now - first[0] >= _SETTLED and done > first[1]:
            text += f", {(done - first[1]) / (now - first[0]) / _MEGA:.1f} MB/s"
        if on_terminal:
            stream.write(f"\r{text}\x1b[K{chr(10) if percent == 100 else ''}")
        else:
            stream.write(f"{text}\n")
        stream.flush()

    return progress
