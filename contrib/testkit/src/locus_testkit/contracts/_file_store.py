"""`FileStoreContract`: the promises of a place for whole files, one test each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import anyio
import pytest

from locus.files import BackendError, FileContent, FileInfo, FileStore
from locus_testkit.contracts._backend import BackendFeatures, await_call
from locus_testkit.contracts._backend_paths import ODD_PATHS
from locus_testkit.contracts._handles import close_handle, opening
from locus_testkit.contracts.base import Contract
from locus_testkit.contracts.features import needs

__all__ = ["FileStoreContract"]

_HANDLES, _STEPS = 4, 6


class _Store:
    """A store as backends use it: a sync method in a worker thread, an async one awaited."""

    def __init__(self, store: FileStore) -> None:
        self.store = store

    async def do(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method."""
        return await await_call(partial(getattr(self.store, method), *args, **options))

    async def load(self, path: str) -> FileContent:
        """A file."""
        content: FileContent = await self.do("load", path)
        assert isinstance(content, FileContent)
        return content

    async def save(self, path: str, data: bytes, **options: Any) -> None:
        """Save a file."""
        await self.do("save", path, data, **options)

    async def list(self, folder: str = "/") -> list[FileInfo]:
        """What is listed."""
        found: list[FileInfo] = list(await self.do("list", folder))
        assert not any(info.is_dir for info in found)
        return found

    async def paths(self, folder: str = "/") -> Sequence[str]:
        """The paths that are listed."""
        return [info.path for info in await self.list(folder)]

    async def code_of(self, method: str, *args: Any, **options: Any) -> str:
        """The code that a call fails with; ``""`` where it does not fail."""
        try:
            await self.do(method, *args, **options)
        except BackendError as e:
            return e.code
        return ""


_OpenStore: TypeAlias = Callable[[], Awaitable[_Store]]


@pytest.mark.anyio
class FileStoreContract(Contract):
    """The promises of `locus.files.FileStore`. Subclass it and say how yours is made.

    Example::

        class TestMyFiles(FileStoreContract):
            features = BackendFeatures(persistent=True, shared=True)

            def make_files(self, folder):
                return MyFiles(folder)
    """

    features: ClassVar[BackendFeatures] = BackendFeatures()

    def make_files(self, folder: Path) -> FileStore | Awaitable[FileStore]:
        """A store without files; may be a coroutine function.

        Args:
            folder: an empty directory; the same for all handles of one test.
        """
        raise NotImplementedError(f"{type(self).__name__} needs make_files(self, folder), which gives a file store")

    async def close_files(self, store: FileStore) -> None:
        """Close a handle: awaits its ``aclose()`` or calls its ``close()`` where it has one."""
        await close_handle(store)

    @pytest.fixture
    async def open_store(self, tmp_path: Path) -> AsyncIterator[_OpenStore]:
        """Opens handles on this test's place; all are closed at its end."""
        async with opening(tmp_path / "files", self.make_files, self.close_files, _Store) as one_more:
            yield one_more

    @pytest.fixture
    async def store(self, open_store: _OpenStore) -> _Store:
        """One handle."""
        return await open_store()

    async def test_bytes_come_back(self, store: _Store) -> None:
        """Whatever they are: none, all of them, text of any encoding, a megabyte."""
        for n, data in enumerate((b"", bytes(range(256)), b"\xff\xfe\0x", "äöü".encode("latin-1"), b"0123" * 250_000)):
            await store.save(f"/d/{n}", data)
            assert (await store.load(f"/d/{n}")).data == data

    async def test_version_changes_with_each_save(self, store: _Store) -> None:
        """Also where the content is the same; reading changes nothing."""
        versions = []
        for data in (b"a", b"b", b"b"):
            await store.save("/a", data)
            versions += [(await store.load("/a")).version, (await store.load("/a")).version]
        assert versions[::2] == versions[1::2]
        assert len(set(versions)) == 3
        assert "" not in versions

    async def test_save_of_a_version_replaces_no_other(self, store: _Store) -> None:
        """A save that names an older one gets ``conflict``, and the content stays."""
        await store.save("/a", b"1", version="")
        old = (await store.load("/a")).version
        assert await store.code_of("save", "/a", b"x", version="") == "conflict"
        await store.save("/a", b"2", version=old)
        assert await store.code_of("save", "/a", b"x", version=old) == "conflict"
        assert await store.code_of("save", "/missing", b"x", version=old) == "conflict"
        assert ((await store.load("/a")).data, await store.paths()) == (b"2", ["/a"])

    async def test_missing_file_is_not_found(self, store: _Store) -> None:
        """Neither to load nor to remove."""
        await store.save("/a/bc", b"x")
        for path in ("/b", "/a/b", "/a/bc/d"):
            assert await store.code_of("load", path) == "file_not_found"
            assert await store.code_of("remove", path) == "file_not_found"

    async def test_directory_is_not_a_file(self, store: _Store) -> None:
        """A file cannot be where files are below it."""
        await store.save("/a/b/c", b"x")
        for path in ("/", "/a", "/a/b"):
            assert await store.code_of("load", path) == "is_directory"
            assert await store.code_of("save", path, b"y") == "is_directory"
            assert await store.code_of("remove", path) == "is_directory"
        assert await store.paths() == ["/a/b/c"]

    async def test_file_is_not_a_directory(self, store: _Store) -> None:
        """Nothing can be below it, at any depth."""
        await store.save("/a", b"x")
        assert await store.code_of("save", "/a/b", b"y") == "invalid_path"
        assert await store.code_of("save", "/a/b/c", b"y", version="") == "invalid_path"
        assert await store.paths() == ["/a"]

    async def test_removed_file_is_gone(self, store: _Store) -> None:
        """With the directory that it made; a version that is not the newest is not removed."""
        await store.save("/a/b", b"1")
        old = (await store.load("/a/b")).version
        await store.save("/a/b", b"2")
        assert await store.code_of("remove", "/a/b", version=old) == "conflict"
        assert (await store.load("/a/b")).data == b"2"
        await store.do("remove", "/a/b", version=(await store.load("/a/b")).version)
        assert (await store.paths(), await store.code_of("load", "/a/b")) == ([], "file_not_found")
        await store.save("/a", b"a file now")
        await store.do("remove", "/a")
        assert await store.paths() == []

    async def test_listing_has_files_below_a_folder(self, store: _Store) -> None:
        """At any depth, by path, with their sizes, more of them than a page of any service."""
        names = sorted(["/a", "/ab/c", "/ab/d/e", "/abc", "/ab-c/f", *(f"/many/{n:02}" for n in range(20))])
        for name in names:
            await store.save(name, name.encode())
        assert await store.paths() == names
        assert [info.size for info in await store.list()] == [len(name) for name in names]
        assert await store.paths("/ab") == ["/ab/c", "/ab/d/e"]
        assert await store.paths("/ab/c") == ["/ab/c"]
        assert await store.paths("/nowhere") == []
        assert all(i.modified_at is None or i.modified_at.tzinfo is not None for i in await store.list())

    async def test_odd_names_come_back(self, store: _Store) -> None:
        """What SQL, a URL or a shell would take for something else is a name here."""
        for path in ODD_PATHS:
            await store.save(path, path.encode())
        assert await store.paths() == sorted(ODD_PATHS)
        for path in ODD_PATHS:
            assert (await store.load(path)).data == path.encode()

    @needs("persistent")
    async def test_another_handle_finds_the_same(self, open_store: _OpenStore) -> None:
        """Also where the one that wrote it is closed, and under the same version."""
        first = await open_store()
        await first.save("/a", b"x")
        content = await first.load("/a")
        await self.close_files(first.store)
        second = await open_store()
        assert (await second.load("/a"), await second.paths()) == (content, ["/a"])

    @needs("shared")
    async def test_handles_compare_and_swap(self, open_store: _OpenStore) -> None:
        """Steps of several handles are all counted: of two that saw one version, one replaces it."""
        handles = [await open_store() for _ in range(_HANDLES)]
        await handles[0].save("/n", b"0")

        async def count(store: _Store) -> None:
            for _ in range(_STEPS):
                while True:
                    seen = await store.load("/n")
                    code = await store.code_of("save", "/n", b"%d" % (int(seen.data) + 1), version=seen.version)
                    assert code in ("", "conflict", "timeout")
                    if not code:
                        break

        async with anyio.create_task_group() as tasks:
            for store in handles:
                tasks.start_soon(count, store)
        assert (await handles[0].load("/n")).data == b"%d" % (_HANDLES * _STEPS)
