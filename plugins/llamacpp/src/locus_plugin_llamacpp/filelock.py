"""A lock between processes that the system releases when its holder dies, however it dies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from locus_plugin_llamacpp.lazy import resolve

__all__ = ["hold_lock"]

_POLL = 0.1  # seconds between tries: a join takes seconds, and the waiting side must stay cancellable


def _try(file: BinaryIO) -> bool:
    try:
        if os.name == "nt":
            msvcrt = resolve("msvcrt")
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl = resolve("fcntl")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
