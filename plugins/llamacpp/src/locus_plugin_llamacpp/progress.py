"""Shows that a model is prepared: joining and loading its file take seconds, and must not look like a hang."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from locus_plugin_llamacpp.store import Progress

__all__ = ["Waiting", "show_progress", "show_waiting", "wait_silently"]

#: Called with the seconds that a load has taken so far, several times a second; in the end with None.
Waiting = Callable[[float | None], None]

_MEGA = 1_000_000


def show_progress(label: str, out: TextIO | None = None) -> Progress:
    """A progress callback that writes one line, rewritten at each percent on a terminal.

    Args:
        label: what is being prepared.
        out: where to; None = standard error, as it is when the callback is called.
    """
    last = -1

    def progress(done: int, total: int) -> None:
        nonlocal last
        stream = sys.stderr if out is None else out
        percent = 100 * done // total if total else 100
        steps = (percent, last) if stream.isatty() else (percent // 100, last // 100)
        if steps[0] == steps[1]:
            return
        last = percent
        text = f"preparing {label} (once): {percent} % of {total // _MEGA} MB"
        if stream.isatty():
            stream.write(f"\r{text}{chr(10) if percent == 100 else ''}")
        else:
            stream.write(f"{text}\n")
        stream.flush()

    return progress


def wait_silently(seconds: float | None) -> None:
    """The callback that shows nothing."""


def show_waiting(label: str, out: TextIO | None = None) -> Waiting:
    """A callback that writes one line on a terminal, rewritten at each second, and nothing elsewhere.

    Args:
        label: what is being loaded.
        out: where to; None = standard error, as it is when the callback is called.
    """
    last = -1

    def waiting(seconds: float | None) -> None:
        nonlocal last
        stream = sys.stderr if out is None else out
        if not stream.isatty() or (seconds is None and last < 0):
            return
        if seconds is None:
            stream.write(f"\rloaded {label} in {last + 1} s   \n")
        elif int(seconds) != last:
            last = int(seconds)
            stream.write(f"\rloading {label}: {last} s")
        stream.flush()

    return waiting
