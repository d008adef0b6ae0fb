"""Every backend keeps the promises of a backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from plugins.oci.tests.emulator import BUCKET
from plugins.oci.tests.kit import Home, at_home
from plugins.oci.tests.verification import Keys

from locus.files import BackendProtocol, FileInfo, GrepMatch, virtual_path
from locus.plugins.providers import provide
from locus_plugin_filesystem import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend, as_backend
from locus_testkit import BackendContract, BackendFeatures

_SHARED = BackendFeatures(persistent=True, shared=True)


class TestStateBackend(BackendContract):
    def make_backend(self, folder: Path) -> BackendProtocol:
        return StateBackend()


class TestFilesystemBackend(BackendContract):
    features = _SHARED

    def make_backend(self, folder: Path) -> BackendProtocol:
        return FilesystemBackend(folder / "root")


@pytest.mark.proof
class TestFilesystemBackendByTheWalk(BackendContract):
    features = _SHARED

    @pytest.fixture(autouse=True)
    def by_the_walk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("locus_plugin_filesystem.descriptors.can_resolve_beneath", lambda: False)

    def make_backend(self, folder: Path) -> BackendProtocol:
        return FilesystemBackend(folder / "root")


class TestStoreBackend(BackendContract):
    features = _SHARED

    def make_backend(self, folder: Path) -> BackendProtocol:
        return StoreBackend(folder / "files.db")


class _Below:
    """What a composite has below one route, as if that were all of it."""

    def __init__(self, backend: CompositeBackend) -> None:
        self.backend = backend

    def write(self, path: str, contents: str) -> Any:
        return self.backend.write(self._outer(path), contents)

    def read(self, path: str, offset: int = 0, limit: int = 100) -> Any:
        return self.backend.read(self._outer(path), offset, limit)

    def edit(self, path: str, old: str, new: str) -> Any:
        return self.backend.edit(self._outer(path), old, new)

    def ls(self, path: str = "/", *, recursive: bool = False) -> Sequence[FileInfo]:
        return [self._inner(info) for info in self.backend.ls(self._outer(path), recursive=recursive)]

    def glob(self, pattern: str, *, path: str = "/", timeout_s: float = 20.0) -> Sequence[FileInfo]:
        found = self.backend.glob(pattern, path=self._outer(path), timeout_s=timeout_s)
        return [self._inner(info) for info in found]

    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> Sequence[GrepMatch]:
        found = self.backend.grep(pattern, path=self._outer(path), recursive=recursive)
        return [GrepMatch(match.path.removeprefix("/on/a route"), match.line, match.text) for match in found]

    def _outer(self, path: str) -> str:
        return f"/on/a route{virtual_path(path)}"

    def _inner(self, info: FileInfo) -> FileInfo:
        return evolve(info, path=info.path.removeprefix("/on/a route"))


@pytest.mark.proof
class TestRouteOfACompositeBackend(BackendContract):
    features = _SHARED

    def make_backend(self, folder: Path) -> BackendProtocol:
        store = StoreBackend(folder / "files.db")
        return _Below(CompositeBackend(StateBackend({"/on/x": "default"}), {"on//a route/": store}))

    # The longest path of all is longer than a path may be with a route before it.


@pytest.mark.proof
class TestDefaultOfACompositeBackend(BackendContract):
    features = _SHARED

    def make_backend(self, folder: Path) -> BackendProtocol:
        return CompositeBackend(FilesystemBackend(folder / "root"), {})


@pytest.mark.proof
class TestFilesOfThePluginSqlite(BackendContract):
    features = _SHARED

    def make_backend(self, folder: Path) -> BackendProtocol:
        return as_backend(provide("backend", f"sqlite:{folder / 'files.db'}"))


@pytest.mark.proof
class TestFilesOfThePluginOci(BackendContract):
    features = _SHARED
    home: Home

    @pytest.fixture(autouse=True)
    def at_home(self, tmp_path: Path) -> Iterator[None]:
        with at_home(Keys.recorded(), tmp_path) as self.home:
            self.home.bucket.page = 100
            yield

    def make_backend(self, folder: Path) -> BackendProtocol:
        return as_backend(provide("backend", f"oci:{BUCKET}/files", settings={"oci": self.home.settings()}))
