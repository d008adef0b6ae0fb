"""Lines from a person: what is pasted is one message, however many lines it has."""

from __future__ import annotations

import importlib
import os
import select
import sys
from contextlib import suppress

__all__ = ["PASTE_SECONDS", "read_message"]

#: A paste arrives at once; a second line is not typed this quickly.
PASTE_SECONDS = 0.05

with suppress(ImportError):
    # Merely loaded, it gives input() line editing, history, and pastes in one piece where the terminal marks them.
    importlib.import_module("readline")


def read_message(prompt: str) -> str:
    r"""One message: a line, the lines pasted with it, and those that a backslash at the end asks for.

    Args:
        prompt: what is shown in front of it on a terminal.

    Raises:
        EOFError: the input has ended.
        KeyboardInterrupt: Ctrl-C.
    """
    if not sys.stdin.isatty():
        return input()
    lines = [input(prompt)]
    while True:
        while _waiting():
            lines.append(input())
        if not lines[-1].endswith("\\"):
            return "\n".join(lines)
        lines[-1] = lines[-1][:-1]
        lines.append(input("... "))


def _waiting() -> bool:
    """Whether another line is there already; always False where a terminal cannot be asked (Windows)."""
    if os.name == "nt":
        return False
    ready, _, _ = select.select([sys.stdin], [], [], PASTE_SECONDS)
    return bool(ready)
