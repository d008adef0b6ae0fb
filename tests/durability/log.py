"""What happened outside of the runs: an append-only log that no crash of a run can take back.

A line is written with one system call, so that a process may be killed anywhere and many may write at once. The log
is what the oracle believes; the journal has to agree with it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Lock
from typing import Any

__all__ = ["Line", "Log"]

Line = dict[str, Any]


class Log:
    """Lines of facts, oldest first.

    Args:
        path: a file that several processes share; None = this process's memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lines: list[Line] = []
        self._lock = Lock()
        self._file = -1 if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, kind: str, /, **facts: Any) -> None:
        """Write a fact."""
        line = {"kind": kind, **facts}
        if self._path is None:
            with self._lock:
                self._lines.append(line)
        else:
            os.write(self._file, (json.dumps(line) + "\n").encode())

    def lines(self, kind: str | None = None) -> list[Line]:
        """The facts of one kind, or all."""
        found = self._lines if self._path is None else [json.loads(s) for s in self._path.read_text().splitlines()]
        return [line for line in found if kind is None or line["kind"] == kind]

    def upto(self, count: int) -> Log:
        """The log as it was when it had so many lines; in memory."""
        before = Log()
        before._lines = self.lines()[:count]
        return before

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
