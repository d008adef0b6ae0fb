"""Shows that a model is loading, which takes seconds and must not look like a hang."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

__all__ = ["Waiting", "show_waiting", "wait_silently"]

#: Called with the seconds that a load has taken so far, several times a second; in the end with None.
Waiting = Callable[[float | None], None]


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
