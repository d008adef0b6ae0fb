"""`StateBackend`: files in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from threading import Lock

from attrs import frozen

from locus.files import BackendError, FileContent, FileInfo, virtual_path
from locus_plugin_filesystem.matching import is_below
from locus_plugin_filesystem.operations import StoreFiles

__all__ = ["StateBackend", "StoredFile"]


def _now() -> datetime:
    return datetime.now(UTC)


@frozen
class StoredFile:
    """A file in memory.

    Args:
        data: its bytes.
        version: how many times a file was saved there.
        modified_at: when it was saved last.
    """

    data: bytes
    version: int
    modified_at: datetime


class StateBackend(StoreFiles):
    """Files in memory, as UTF-8 text; gone with the object. Directories are there where files are below them.

    Safe to use from several threads: what loads, compares and saves does so under one lock.

    Args:
        files: what is there already, text by path.
        clock: the time that files are stamped with.
    """

    #: Its calls wait for nothing, so they need no thread of their own.
    in_memory = True

    def __init__(self, files: Mapping[str, str] | None = None, *, clock: Callable[[], datetime] = _now) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._files: dict[str, StoredFile] = {}
        #: How many files are below each directory.
        self._below: Counter[str] = Counter()
        self._bytes = 0
        for path, contents in (files or {}).items():
            self.write(path, contents)

    def load(self, path: str) -> FileContent:
        """See `locus.files.FileStore`."""
        path = virtual_path(path)
        with self._lock:
            self._check_no_directory(path)
            found = self._files.get(path)
        if found is None:
            raise BackendError("file_not_found")
        return FileContent(found.data, str(found.version))

    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        """See `locus.files.FileStore`."""
        path = virtual_path(path)
        with self._lock:
            self._check_place(path)
            before = self._find_version(path, version)
            self._put(path, StoredFile(data, before.version + 1 if before else 1, self._clock()))

    def remove(self, path: str, *, version: str | None = None) -> None:
        """See `locus.files.FileStore`."""
        path = virtual_path(path)
        with self._lock:
            self._check_no_directory(path)
            before = self._find_version(path, version)
            if before is None:
                raise BackendError("file_not_found")
            self._bytes -= len(before.data)
            del self._files[path]
            self._below -= Counter(map(str, PurePosixPath(path).parents))

    def list(self, folder: str) -> list[FileInfo]:
        """See `locus.files.FileStore`."""
        folder = virtual_path(folder)
        with self._lock:
            found = [(path, each) for path, each in self._files.items() if is_below(path, folder)]
        return [FileInfo(path, size=len(each.data), modified_at=each.modified_at) for path, each in sorted(found)]

    def __iter__(self) -> Iterator[tuple[str, StoredFile]]:
        """The files as they are now, with their paths."""
        with self._lock:
            return iter([*self._files.items()])

    @property
    def held(self) -> tuple[int, int]:
        """How many files there are, and the bytes in them."""
        return len(self._files), self._bytes

    def find(self, path: str) -> StoredFile | None:
        """The file at a path, or None."""
        return self._files.get(path)

    def check_save(self, path: str) -> None:
        """Refuse a path where no file can be; see `save`.

        Raises:
            BackendError: ``is_directory`` or ``invalid_path``.
        """
        with self._lock:
            self._check_place(path)

    def put(self, path: str, file: StoredFile) -> None:
        """Put a file where it belongs, as it is."""
        with self._lock:
            self._put(path, file)

    def _put(self, path: str, file: StoredFile) -> None:
        before = self._files.get(path)
        if before is None:
            self._below.update(map(str, PurePosixPath(path).parents))
        self._bytes += len(file.data) - (len(before.data) if before else 0)
        self._files[path] = file

    def _check_place(self, path: str) -> None:
        self._check_no_directory(path)
        if any(str(parent) in self._files for parent in PurePosixPath(path).parents):
            raise BackendError("invalid_path")

    def _find_version(self, path: str, version: str | None) -> StoredFile | None:
        before = self._files.get(path)
        if version is not None and version != (str(before.version) if before else ""):
            raise BackendError("conflict", f"{path} was changed in the meantime; read it again")
        return before

    def _check_no_directory(self, path: str) -> None:
        if path == "/" or path in self._below:
            raise BackendError("is_directory")
