"""A process that is frozen: one that a lease outlives, or a server that answers nothing for a while."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

__all__ = ["freeze_process", "thaw_process"]


def freeze_process(pid: int) -> None:
    """Send SIGSTOP, and wait until no thread of the process runs any more.

    The signal alone is not enough: a server with many threads goes on for a moment, and on a busy machine that is
    enough for another answer. Linux only.

    Args:
        pid: of any process of this user, a child or not.

    Raises:
        ProcessLookupError: no process has that id.
    """
    os.kill(pid, signal.SIGSTOP)
    while not all(map(_stands_still, Path(f"/proc/{pid}/task").iterdir())):
        time.sleep(0.001)


def thaw_process(pid: int) -> None:
    """Let it go on: SIGCONT."""
    os.kill(pid, signal.SIGCONT)


def _stands_still(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:  # it has ended meanwhile
        return True
    return state in "TZX"
