"""Where the process begins: it imports next to nothing, so that a Ctrl-C is handled while the rest is loaded."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module

__all__ = ["main"]

#: `locus_plugin_cli.status.STOPPED`, which is not loaded yet when it is needed.
_STOPPED = 130


def main() -> None:
    """The ``locus`` script."""
    _fill()
    try:
        import_module("locus_plugin_cli.main").main()
    except KeyboardInterrupt:
        with suppress(OSError):
            os.write(2, b"locus: stopped by Ctrl-C\n")
        os._exit(_STOPPED)


def _fill() -> None:
    """Open the standard streams that were closed at the start: Python has None there, which no code expects."""
    # In this order each takes the number that is free: a file that is opened later must not be written to as output.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115  # as long as the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
