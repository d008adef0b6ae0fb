"""The calls of a backend over a file store: each as a generator, driven alike over a sync and an async store.

A generator yields what the store is to do, as the name of a method with its arguments, and is sent what came of it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from locus.files import (
    MAX_MATCHES,
    BackendError,
    FileContent,
    FileInfo,
    FileStore,
    GrepMatch,
    IndexedFileStore,
    virtual_path,
)
from locus_plugin_filesystem.literals import required_texts
from locus_plugin_filesystem.matching import SECONDS, Deadline, PathPattern, entries
from locus_plugin_filesystem.text import LineSearch, decode, encode, number_lines, replace_once

__all__ = ["AsyncStoreFiles", "StoreFiles"]

T = TypeVar("T")

#: A call of the store: the method, its positional arguments, its options.
Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
Calls: TypeAlias = Generator[Call, Any, T]

#: A larger file is not searched.
_SEARCHED_BYTES = 50_000_000


def _call(method: str, *arguments: Any, **options: Any) -> Call:
    return method, arguments, options


def _write(path: str, contents: str) -> Calls[str]:
    path = virtual_path(path)
    yield _call("save", path, encode(contents))
    return path


def _read(path: str, offset: int, limit: int) -> Calls[str]:
    content: FileContent = yield _call("load", virtual_path(path))
    return number_lines(decode(content.data), offset, limit)


def _read_start(path: str, size: int) -> Calls[bytes]:
    content: FileContent = yield _call("load", virtual_path(path))
    return content.data[:size]


def _edit(path: str, old: str, new: str) -> Calls[str]:
    path = virtual_path(path)
    content: FileContent = yield _call("load", path)
    text = replace_once(decode(content.data), old, new, path)
    yield _call("save", path, encode(text), version=content.version)
    return path


def _ls(path: str, recursive: bool) -> Calls[list[FileInfo]]:  # noqa: FBT001
    path = virtual_path(path)
    return entries((yield from _files(path)), path, recursive=recursive)


def _glob(pattern: str, path: str, timeout_s: float) -> Calls[list[FileInfo]]:
    path, deadline = virtual_path(path), Deadline(timeout_s)
    wanted, found = PathPattern(pattern, path), []
    for each in (yield from _files(path)):
        deadline.check()
        if wanted.matches(each.path):
            found.append(each)
    return found


def _grep(pattern: str, path: str, recursive: bool, *, indexed: bool) -> Calls[list[GrepMatch]]:  # noqa: FBT001
    path, deadline, search = virtual_path(path), Deadline(SECONDS), LineSearch(pattern)
    found: list[GrepMatch] = []
    within = path.rstrip("/") + "/"
    files = yield from _files(path)
    if indexed and (texts := required_texts(pattern)):
        candidates = frozenset((yield _call("candidates", path, texts)))
        files = [each for each in files if each.path in candidates]
    for each in files:
        deadline.check()
        is_deep = "/" in each.path.removeprefix(within) if each.path != path else False
        if len(found) >= MAX_MATCHES or each.size > _SEARCHED_BYTES or (is_deep and not recursive):
            continue
        try:
            content: FileContent = yield _call("load", each.path)
        except BackendError:  # it has gone since it was listed
            continue
        found += search.matches(each.path, content.data, MAX_MATCHES - len(found), deadline.check)
    return found


def _files(path: str) -> Calls[Sequence[FileInfo]]:
    files: Sequence[FileInfo] = yield _call("list", path)
    if not files and path != "/":
        raise BackendError("file_not_found")
    return files


class StoreFiles:
    """A backend over a sync file store: the store itself, where a class derives from this one, or another."""

    def __init__(self, store: FileStore | None = None) -> None:
        self._store: Any = self if store is None else store

    def write(self, path: str, contents: str) -> str:
        """See `locus.files.BackendProtocol`; returns the path."""
        return self._do(_write(path, contents))

    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        """See `locus.files.BackendProtocol`."""
        return self._do(_read(path, offset, limit))

    def read_start(self, path: str, size: int) -> bytes:
        """The first bytes of a file, at most ``size``."""
        return self._do(_read_start(path, size))

    def edit(self, path: str, old: str, new: str) -> str:
        """See `locus.files.BackendProtocol`; returns the path."""
        return self._do(_edit(path, old, new))

    def ls(self, path: str = "/", recursive: bool = False) -> list[FileInfo]:  # noqa: FBT001, FBT002 - as upstream has it
        """See `locus.files.BackendProtocol`."""
        return self._do(_ls(path, recursive))

    def glob(self, pattern: str, path: str = "/", timeout_s: float = SECONDS) -> list[FileInfo]:
        """See `locus.files.BackendProtocol`."""
        return self._do(_glob(pattern, path, timeout_s))

    def grep(self, pattern: str, path: str = "/", recursive: bool = True) -> list[GrepMatch]:  # noqa: FBT001, FBT002
        """See `locus.files.BackendProtocol`."""
        return self._do(_grep(pattern, path, recursive, indexed=isinstance(self._store, IndexedFileStore)))

    def _do(self, calls: Calls[T]) -> T:
        try:
            wanted = next(calls)
            while True:
                method, arguments, options = wanted
                try:
                    answer = getattr(self._store, method)(*arguments, **options)
                except BackendError as e:
                    wanted = calls.throw(e)
                else:
                    wanted = calls.send(answer)
        except StopIteration as e:
            result: T = e.value
            return result


class AsyncStoreFiles:
    """A backend over an async file store; see `StoreFiles`."""

    def __init__(self, store: FileStore) -> None:
        self._store: Any = store

    async def write(self, path: str, contents: str) -> str:
        """See `locus.files.BackendProtocol`; returns the path."""
        return await self._do(_write(path, contents))

    async def read(self, path: str, *, offset: int = 0, limit: int = 100) -> str:
        """See `locus.files.BackendProtocol`."""
        return await self._do(_read(path, offset, limit))

    async def read_start(self, path: str, size: int) -> bytes:
        """The first bytes of a file, at most ``size``."""
        return await self._do(_read_start(path, size))

    async def edit(self, path: str, old: str, new: str) -> str:
        """See `locus.files.BackendProtocol`; returns the path."""
        return await self._do(_edit(path, old, new))

    async def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        """See `locus.files.BackendProtocol`."""
        return await self._do(_ls(path, recursive))

    async def glob(self, pattern: str, *, path: str = "/", timeout_s: float = SECONDS) -> list[FileInfo]:
        """See `locus.files.BackendProtocol`."""
        return await self._do(_glob(pattern, path, timeout_s))

    async def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        """See `locus.files.BackendProtocol`."""
        return await self._do(_grep(pattern, path, recursive, indexed=isinstance(self._store, IndexedFileStore)))

    async def _do(self, calls: Calls[T]) -> T:
        try:
            wanted = next(calls)
            while True:
                method, arguments, options = wanted
                try:
                    answer = await getattr(self._store, method)(*arguments, **options)
                except BackendError as e:
                    wanted = calls.throw(e)
                else:
                    wanted = calls.send(answer)
        except StopIteration as e:
            result: T = e.value
            return result
