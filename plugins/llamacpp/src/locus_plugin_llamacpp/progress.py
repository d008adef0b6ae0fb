"""Shows how far a packaged model is joined: it happens once, takes seconds, and must not look like a hang."""

from __future__ import annotations

import sys
from typing import TextIO

from locus_plugin_llamacpp.store import Progress

__all__ = ["show_progress"]

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
