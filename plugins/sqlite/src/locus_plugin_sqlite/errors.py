"""What can be wrong with the file. Nothing is ever half-written: an append is in the file whole, or not at all.

StoreError                  (of the kernel)
├── FileProblem             something is wrong with the file (`.path`)
│   ├── DiskFull            the disk has no room to write
│   ├── FileLocked          another process kept it locked
│   ├── FileReadOnly        it, or its folder, may not be written
│   ├── FileUnusable        it is a folder, its folder is missing, or it may not be opened
│   ├── FileDamaged         its content is not what was written
│   │   └── EntryDamaged    that of one thread, from one entry on (`.thread_id`, `.n`); a `JournalDamaged`
│   ├── FileForeign         it is a database of another program
│   ├── FileTooNew          a newer version of this plugin wrote it (`.found`, `.supported`)
│   ├── FileTooOld          a version before the first release wrote it (`.found`)
│   ├── FileGone            it was deleted or replaced while in use
│   └── FileFailed          the operating system could not read or write it
└── StoreClosed             the store was closed
"""

from __future__ import annotations

from pathlib import Path

from locus.core.errors import JournalDamaged, StoreError

__all__ = [
    "DiskFull",
    "EntryDamaged",
    "FileDamaged",
    "FileFailed",
    "FileForeign",
    "FileGone",
    "FileLocked",
    "FileProblem",
    "FileReadOnly",
    "FileTooNew",
    "FileTooOld",
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
    """The disk has no room to write."""


class FileLocked(FileProblem):
    """Another process kept the file locked for longer than this one waits."""


class FileReadOnly(FileProblem):
    """The file, or its folder, may not be written."""


class FileUnusable(FileProblem):
    """It is a folder, its folder is missing, or it may not be opened."""


class FileDamaged(FileProblem):
    """Its content is not what was written."""


class EntryDamaged(FileDamaged, JournalDamaged):
    """What is left of a thread is not what was written to it.

    Args:
        path: the file.
        thread_id: the thread.
        n: number of the first damaged entry, or None where the thread's own row is damaged.
        what: what is wrong with it.
    """

    def __init__(self, path: Path, thread_id: str, n: int | None, what: str) -> None:
        where = f"thread {thread_id!r}" if n is None else f"entry {n} of thread {thread_id!r}"
        super().__init__(
            path,
            f"{where} {what}; restore the file from a backup, write what can be read into a new file with "
            "SqliteStore.salvage(), or delete the thread",
        )
        self.thread_id, self.n = thread_id, n


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


class FileTooOld(FileProblem):
    """A version of this plugin from before its first release wrote it; it was not touched.

    Args:
        path: the file.
        found: the version of its schema.
    """

    def __init__(self, path: Path, found: int) -> None:
        self.found = found
        super().__init__(
            path,
            f"it has schema version {found}, of a plugin that was never released and that this one does not read; "
            "start a new file (nothing was changed)",
        )


class FileGone(FileProblem):
    """It was deleted or replaced while in use; what had been committed to it went with it."""


class FileFailed(FileProblem):
    """The operating system could not read or write it."""


class StoreClosed(StoreError):
    """The store was closed; make another one."""
