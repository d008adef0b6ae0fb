"""Lines from a person: what is pasted is one message, however many lines it has."""

from __future__ import annotations

import os
import select
import sys

from locus_plugin_cli.line_history import LineHistory
from locus_plugin_cli.streams import standard

__all__ = ["PASTE_SECONDS", "read_message"]

#: A paste arrives at once; a second line is not typed this quickly.
PASTE_SECONDS = 0.05


def read_message(prompt: str, history: LineHistory) -> str:
    r"""One message: a line, the lines pasted with it, and those that a backslash at the end asks for.

    Args:
        prompt: what is shown in front of it on a terminal.
        history: gets the message.

    Raises:
        EOFError: the input has ended.
        KeyboardInterrupt: Ctrl-C.
    """
    if not sys.stdin.isatty():
        return input()
    with standard().prompting():
        lines = [input(prompt)]
        while True:
            while _waiting():
                lines.append(input())
            if not lines[-1].endswith("\\"):
                history.add("\n".join(lines))
                return "\n".join(lines)
            lines[-1] = lines[-1][:-1]
            lines.append(input("... "))


def _waiting() -> bool:
    """Whether another line is there already; always False where a terminal cannot be asked (Windows)."""
    if os.name == "nt":
        return False
    ready, _, _ = select.select([sys.stdin], [], [], PASTE_SECONDS)
    return bool(ready)
