"""What can be wrong with the file. Nothing is ever half-written: an append is in the file whole, or not at all.

StoreError                  (of the kernel)
├── FileProblem             something is wrong with the file (`.path`)
│   ├── DiskFull            there is no room to write
│   ├── FileLocked          another process kept it locked
│   ├── FileReadOnly        it, or its folder, may not be written
│   ├── FileUnusable        it is a folder, its folder is missing, or it may not be opened
│   ├── FileDamaged         its content is not what was written
│   ├── FileForeign         it is a database of another program
│   ├── FileTooNew          a newer version of this plugin wrote it (`.found`, `.supported`)
│   ├── FileGone            it was deleted or replaced while in use
│   └── FileFailed          the operating system could not read or write it
└── StoreClosed             the store was closed
"""

from __future__ import annotations

from pathlib import Path

from locus.core.errors import StoreError

__all__ = [
    "DiskFull",
    "FileDamaged",
    "FileFailed",
    "FileForeign",
    "FileGone",
    "FileLocked",
    "FileProblem",
    "FileReadOnly",
    "FileTooNew",
    "FileUnusable",
    "StoreClosed",
]


class FileProblem(StoreError):
    """Something is wrong with the file.

    Args:
        path: the file.
        message: what happened and what to do.
    """

    def __init__(self, path: Path, message: str) -> None:
        self.path = path
        super().__init__(f"{path}: {message}", store="sqlite")


class DiskFull(FileProblem):
    """There is no room to write."""


class FileLocked(FileProblem):
    """Another process kept the file locked for longer than this one waits."""


class FileReadOnly(FileProblem):
    """The file, or its folder, may not be written."""


class FileUnusable(FileProblem):
    """It is a folder, its folder is missing, or it may not be opened."""


class FileDamaged(FileProblem):
    """Its content is not what was written."""


class FileForeign(FileProblem):
    """It is a database of another program; it was not touched."""


class FileTooNew(FileProblem):
    """A newer version of this plugin wrote it; it was not touched.

    Args:
        path: the file.
        found: the version of its schema.
        supported: the newest version that this installation reads.
    """

    def __init__(self, path: Path, found: int, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(
            path,
            f"it has schema version {found}, this installation reads up to {supported}; "
            "upgrade locus-plugin-sqlite to use it (nothing was changed)",
        )


class FileGone(FileProblem):
    """It was deleted or replaced while in use; what had been committed to it went with it."""


class FileFailed(FileProblem):
    """The operating system could not read or write it."""


class StoreClosed(StoreError):
    """The store was closed; make another one."""
