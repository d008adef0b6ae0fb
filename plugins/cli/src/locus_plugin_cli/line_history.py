"""The lines that were typed in chats, for the arrow keys of the next one: a file that its owner alone reads.

What looks like a secret is not kept, nor is a line that begins with a blank, as in shells.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from locus.plugins import scrub
from locus_plugin_cli.hiding import looks_like_key

__all__ = ["LineHistory"]

#: How many lines are kept.
_MOST = 1_000

#: Characters of a line that is kept; a longer one was pasted.
_LONGEST = 2_000

#: What passwords are introduced with.
_SECRET = re.compile(r"\b(?:password|passwd|secret|token)\s*[:=]")


def _readline() -> Any:
    """The module behind `input`, or None on a system that lacks it (Windows)."""
    with suppress(ImportError):
        # Merely loaded, it gives input() line editing, and pastes in one piece where the terminal marks them.
        return importlib.import_module("readline")
    return None


class LineHistory:
    """What the arrow keys and Tab find while a chat reads lines.

    Args:
        file: where lines are kept from one chat to the next; None = nowhere.
        words: what Tab completes at the beginning of a line.
    """

    def __init__(self, file: Path | None, words: Sequence[str] = ()) -> None:
        self._file = file
        self._words = words
        self._readline = _readline()

    def open(self) -> None:
        """Load the lines, and set up Tab."""
        if self._readline is None:
            return
        # Answers to questions are typed in a chat as well, and do not belong to its lines.
        if hasattr(self._readline, "set_auto_history"):
            self._readline.set_auto_history(False)
        for line in self._load():
            self._readline.add_history(line)
        self._readline.set_completer_delims("")
        self._readline.set_completer(_completer(self._words))
        is_libedit = "libedit" in (self._readline.__doc__ or "")
        self._readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def add(self, line: str) -> None:
        """Keep a line that was typed; where the file cannot be written, for this chat only."""
        if self._readline is None or not line.strip():
            return
        self._readline.add_history(line)
        if self._file is None or line[0].isspace() or len(line) > _LONGEST or _is_secretive(line):
            return
        with suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One write: two chats at a time do not mix their lines.
            number = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(number, f"{json.dumps(line)}\n".encode())
            finally:
                os.close(number)

    def _load(self) -> list[str]:
        if self._file is None:
            return []
        lines: list[str] = []
        with suppress(OSError, UnicodeDecodeError):
            for text in self._file.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    line = json.loads(text)
                    if isinstance(line, str):
                        lines.append(line)
            if len(lines) > 2 * _MOST:
                fresh = self._file.with_suffix(".new")
                fresh.touch(mode=0o600)
                fresh.write_text("".join(f"{json.dumps(line)}\n" for line in lines[-_MOST:]), encoding="utf-8")
                fresh.replace(self._file)
        return lines[-_MOST:]


def _is_secretive(line: str) -> bool:
    return scrub(line) != line or _SECRET.search(line) is not None or looks_like_key(line)


def _completer(words: Sequence[str]) -> Callable[[str, int], str | None]:
    def complete(text: str, state: int) -> str | None:
        if not text.startswith("/"):
            return f"{text}\t" if state == 0 else None  # Tab is a tab in a message
        return next(iter([word for word in words if word.startswith(text)][state:]), None)

    return complete
