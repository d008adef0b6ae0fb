"""A lock between processes that the system releases when its holder dies, however it dies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from locus.plugin import Lazy

__all__ = ["hold_lock"]

_POLL = 0.1  # seconds between tries: a fetch takes seconds or minutes, and the waiting side must stay cancellable

#: Each is there on one kind of system only.
_fcntl: Any = Lazy("fcntl")
_msvcrt: Any = Lazy("msvcrt")


def _try(file: BinaryIO) -> bool:
    try:
        if os.name == "nt":
            _msvcrt.locking(file.fileno(), _msvcrt.LK_NBLCK, 1)
        else:
            _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextmanager
def hold_lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file ``path``, made if need be and left in place.

    Args:
        path: the lock file; it must never be unlinked, or two holders could get in.
        waiting: called between tries; it may raise to give up.
    """
    with path.open("ab") as file:
        while not _try(file):
            waiting()
            time.sleep(_POLL)
        yield
