"""A backend that keeps every promise, in small parts, and the contracts over such backends, called by hand."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from typing import Any

import re2  # type: ignore[import-untyped]  # it ships no types

from locus.files import MAX_MATCHES, BackendError, FileContent, FileInfo, GrepMatch, virtual_path
from locus_testkit import BackendContract, BackendFeatures, FileStoreContract
from locus_testkit.contracts._backend import Files
from locus_testkit.contracts._file_store import _Store

__all__ = ["BACKEND_PROMISES", "STORE_PROMISES", "Backend", "OpenedBackend", "OpenedStore", "Store"]

_OF_THE_CONTRACT = "test_every_promise_is_kept_or_excused"
BACKEND_PROMISES = sorted(n for n in dir(BackendContract) if n.startswith("test_") and n != _OF_THE_CONTRACT)
STORE_PROMISES = sorted(n for n in dir(FileStoreContract) if n.startswith("test_") and n != _OF_THE_CONTRACT)


class Store:
    """Whole files in memory."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.files: dict[str, tuple[bytes, int]] = {}
        self.saves = 0

    def below(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return sorted(each for each in self.files if each.startswith(start))

    def load(self, path: str) -> FileContent:
        path = virtual_path(path)
        with self.lock:
            self.check(path)
            if path not in self.files:
                raise BackendError("file_not_found", path)
            data, version = self.files[path]
            return FileContent(data, str(version))

    def check(self, path: str) -> None:
        if path == "/" or self.below(path):
            raise BackendError("is_directory", path)

    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        path = virtual_path(path)
        with self.lock:
            self.check(path)
            if any(path.startswith(f"{each}/") for each in self.files):
                raise BackendError("invalid_path", path)
            self.compare(path, version)
            self.saves += 1
            self.files[path] = data, self.saves

    def compare(self, path: str, version: str | None) -> None:
        found = str(self.files[path][1]) if path in self.files else ""
        if version is not None and version != found:
            raise BackendError("conflict", path)

    def remove(self, path: str, *, version: str | None = None) -> None:
        path = virtual_path(path)
        with self.lock:
            self.check(path)
            if path not in self.files:
                raise BackendError("file_not_found", path)
            self.compare(path, version)
            del self.files[path]

    def list(self, folder: str) -> list[FileInfo]:
        folder = virtual_path(folder)
        with self.lock:
            found = [each for each in (folder, *self.below(folder)) if each in self.files]
            return [FileInfo(each, False, len(self.files[each][0])) for each in found]


class Backend:
    """A backend over such a store; its parts are there to be broken."""

    flags = 0

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()

    def path(self, path: str) -> str:
        return virtual_path(path)

    def encode(self, contents: str) -> bytes:
        try:
            return contents.encode()
        except UnicodeEncodeError as e:
            raise BackendError("not_text") from e

    def lines(self, text: str) -> list[str]:
        return text.removesuffix("\n").split("\n") if text else []

    def page(self, lines: list[str], offset: int, limit: int) -> list[tuple[int, str]]:
        return [*enumerate(lines, 1)][offset : offset + limit if limit > 0 else None]

    def write(self, path: str, contents: str) -> str:
        path = self.path(path)
        self.store.save(path, self.encode(contents))
        return path

    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        lines = self.lines(self.store.load(self.path(path)).data.decode())
        return "\n".join(f"{n:6}\t{line}" for n, line in self.page(lines, offset, limit))

    def replaced(self, text: str, old: str, new: str) -> str:
        at = text.find(old)
        if not old or at < 0 or text.find(old, at + 1) >= 0:
            raise ValueError("it must occur once")
        return text[:at] + new + text[at + len(old) :]

    def edit(self, path: str, old: str, new: str) -> str:
        path = self.path(path)
        content = self.store.load(path)
        text = self.replaced(content.data.decode(), old, new)
        self.store.save(path, self.encode(text), version=content.version)
        return path

    def infos(self, path: str) -> list[FileInfo]:
        found = self.store.list(path)
        if not found and path != "/":
            raise BackendError("file_not_found", path)
        return found

    def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        path = self.path(path)
        found: dict[str, FileInfo] = {}
        start = len(path.rstrip("/")) + 1
        for info in self.infos(path):
            names = info.path[start:].split("/")
            for depth in range(1, len(names) if recursive else min(2, len(names))):
                place = info.path[:start] + "/".join(names[:depth])
                found[place] = FileInfo(place, is_dir=True)
            if recursive or len(names) == 1:
                found[info.path] = info
        return sorted(found.values(), key=lambda info: info.path)

    def matcher(self, pattern: str) -> Callable[[str], object]:
        translated = re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
        translated = translated.replace(r"\?", "[^/]").replace(r"\{", "(?:").replace(r"\}", ")")
        translated = re.sub(r"\\\[([A-Za-z]+)\\\]", r"[\1]", translated).replace(",", "|")
        try:
            found: Callable[[str], object] = re2.compile(translated).fullmatch
        except re2.error as e:
            raise BackendError("invalid_pattern") from e
        return found

    def glob(self, pattern: str, *, path: str = "/", timeout_s: float = 20.0) -> list[FileInfo]:
        path = self.path(path)
        matches, start = self.matcher(pattern), len(path.rstrip("/")) + 1
        return [info for info in self.infos(path) if matches(info.path[start:])]

    def searcher(self, pattern: str) -> Callable[[str], object]:
        options = re2.Options()
        options.log_errors, options.never_nl = False, True
        try:
            found: Callable[[str], object] = re2.compile(pattern, options).search
        except re2.error as e:
            raise BackendError("invalid_pattern") from e
        return found

    def is_searched(self, data: bytes) -> bool:
        return b"\0" not in data

    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        path, search = self.path(path), self.searcher(pattern)
        found: list[GrepMatch] = []
        for info in self.infos(path):
            data = self.store.load(info.path).data
            rest = info.path[len(path.rstrip("/")) + 1 :]
            if self.is_searched(data) and (recursive or "/" not in rest):
                lines = enumerate(self.lines(data.decode()), 1)
                found += [GrepMatch(info.path, n, line) for n, line in lines if search(line)]
        return found[: self.most()]

    def most(self) -> int:
        return MAX_MATCHES


class OpenedBackend(BackendContract):
    """The contract with every feature, over one kind of backend."""

    features = BackendFeatures(persistent=True, shared=True)

    def __init__(self, kind: Callable[[Store], Any]) -> None:
        self.kind, self.store = kind, Store()

    async def obey(self, test: str) -> None:
        """Run one test of the contract."""

        async def open_files() -> Files:
            return Files(self.kind(self.store))

        method = getattr(self, test)
        await method(open_files if "open_files" in inspect.signature(method).parameters else await open_files())


class OpenedStore(FileStoreContract):
    """The same for stores; all handles of a test are one store, or each its own."""

    features = BackendFeatures(persistent=True, shared=True)

    def __init__(self, kind: Callable[[], Any], *, alone: bool = False) -> None:
        self.kind, self.alone, self.one = kind, alone, kind()

    async def obey(self, test: str) -> None:
        """Run one test of the contract."""

        async def open_store() -> _Store:
            return _Store(self.kind() if self.alone else self.one)

        method = getattr(self, test)
        await method(open_store if "open_store" in inspect.signature(method).parameters else await open_store())
