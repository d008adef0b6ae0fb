"""Names of files: patterns that match them, directories that follow from them, and the time that looking may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from locus.files import BackendError, FileInfo
from locus_plugin_filesystem.patterns import glob_match

__all__ = ["SECONDS", "Deadline", "PathPattern", "entries"]

#: How long a glob or a grep may take.
SECONDS = 20.0

#: Characters of a pattern: more are data, not a pattern.
_LONGEST_PATTERN = 1_000


class Deadline:
    """Raises once the time is up.

    Args:
        seconds: from now on.
        clock: seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._end = clock() + seconds

    def check(self) -> None:
        """Raise once the time is up.

        Raises:
            BackendError: ``timeout``.
        """
        if self._clock() > self._end:
            raise BackendError("timeout", f"it took longer than {self._seconds:g} s; narrow the path or the pattern")


class PathPattern:
    """A POSIX pattern for paths: ``*`` does not match ``/``, ``**`` does, braces are alternatives.

    A name that begins with a dot is matched where the pattern has that dot.

    Args:
        pattern: seen from the folder, or absolute.
        folder: see `locus.files.virtual_path`.
        hidden: wildcards match such names as well.

    Raises:
        BackendError: ``invalid_pattern``: it is empty, too long, or has a range that ends before it begins.
    """

    def __init__(self, pattern: str, folder: str = "/", *, hidden: bool = False) -> None:
        if not pattern or len(pattern) > _LONGEST_PATTERN or "\0" in pattern:
            raise BackendError("invalid_pattern", f"expected 1 to {_LONGEST_PATTERN:,} characters, without NUL")
        self._seen_from = 1 if pattern.startswith("/") or folder == "/" else len(folder) + 1
        self._match = glob_match(pattern.removeprefix("/"), hidden=hidden)

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a file.

        Args:
            path: of a file below the folder.
        """
        return bool(self._match(path[self._seen_from :]))


def entries(files: Iterable[FileInfo], folder: str, *, recursive: bool) -> list[FileInfo]:
    """What a folder shows of the files below it: the files, and the directories that these make, by path.

    Args:
        files: every file below the folder; the file itself, where the folder is one.
        folder: see `locus.files.virtual_path`.
        recursive: everything below it, or its own entries alone.
    """
    found: dict[str, FileInfo] = {}
    for each in files:
        parents = [str(parent) for parent in PurePosixPath(each.path).parents][::-1]
        below = [p for p in parents if p != folder and is_below(p, folder)]
        shown = [*(FileInfo(p, is_dir=True) for p in below), each]
        for one in shown if recursive else shown[:1]:
            found.setdefault(one.path, one)
    return sorted(found.values(), key=lambda info: info.path)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it."""
    return folder == "/" or path == folder or path.startswith(f"{folder}/")
