"""What can go wrong with a pinned file.

PinnedFileError
├── PipMissing        what has to be fetched cannot be, without pip (`.install`)
├── FetchFailed       pip did not get a part (`.output`)
├── FileCorrupt       the bytes are not the ones that were pinned (`.expected`, `.actual`)
├── NoRoom            the disk has no room for it (`.path`, `.needed`, `.free`)
└── FolderUnusable    the cache folder cannot be written to, or something else is in the file's place (`.path`)
"""

from __future__ import annotations

from pathlib import Path

from locus.core.errors import LocusError

__all__ = ["FetchFailed", "FileCorrupt", "FolderUnusable", "NoRoom", "PinnedFileError", "PipMissing"]


class PinnedFileError(LocusError):
    """A pinned file cannot be obtained.

    Args:
        label: what the file is, such as a model's name.
        what: what happened and what to do.
    """

    def __init__(self, label: str, what: str) -> None:
        self.label, self.what = label, what
        super().__init__(f"{label}: {what}")


class PipMissing(PinnedFileError):
    """A file has to be fetched, and this Python has no pip.

    Args:
        label: what the file is.
        python: the interpreter.
        install: the command that gives it one.
    """

    def __init__(self, label: str, python: str, install: str) -> None:
        self.install = install
        super().__init__(label, f"fetching it takes pip, which {python or 'this program'} does not have; {install}")


class FetchFailed(PinnedFileError):
    """pip did not get a part. The parts that are complete are kept.

    Args:
        label: what the file is.
        requirement: what was asked for.
        output: what pip said.
    """

    def __init__(self, label: str, requirement: str, output: str) -> None:
        self.output = output
        super().__init__(label, f"pip could not fetch {requirement}: {output}; to go on from there, try again")


class FileCorrupt(PinnedFileError):
    """The SHA-256 is not the pinned one; the bytes were not used.

    Args:
        label: what the file is.
        path: what was hashed.
        expected: the pinned SHA-256, hexadecimal.
        actual: the SHA-256 found.
    """

    def __init__(self, label: str, path: Path, expected: str, actual: str) -> None:
        self.path, self.expected, self.actual = path, expected, actual
        super().__init__(
            label, f"{path.name} has the SHA-256 {actual}, expected {expected}; it was thrown away and is not used"
        )


class NoRoom(PinnedFileError):
    """The disk has no room for the file.

    Args:
        label: what the file is.
        path: the folder without room.
        needed: bytes that are still to be written there.
        free: bytes that are free there.
    """

    def __init__(self, label: str, path: Path, needed: int, free: int) -> None:
        self.path, self.needed, self.free = path, needed, free
        super().__init__(
            label,
            f"{path} has {free} bytes free, {needed} are needed; make room, or set LOCUS_CACHE to a folder elsewhere",
        )


class FolderUnusable(PinnedFileError):
    """The cache folder cannot be written to, or something else is in the place of the file.

    Args:
        label: what the file is.
        path: the folder, or what is in the file's place.
        what: what is wrong with it, and what to do.
    """

    def __init__(self, label: str, path: Path, what: str) -> None:
        self.path = path
        super().__init__(label, what)
