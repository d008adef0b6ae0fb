"""What the promises of a backend for files have in common: features, handles, and the words they are written in."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import anyio.to_thread
import pytest
from attrs import frozen

from locus.files import BackendError, BackendProtocol, FileInfo, GrepMatch
from locus_testkit.contracts._handles import close_handle, opening
from locus_testkit.contracts.base import Contract

__all__ = ["BackendFeatures", "BackendPromises", "Files", "OpenFiles", "await_call"]

#: Seconds for what takes milliseconds where it is not attacked; a hostile pattern would take years.
PATIENCE = 30.0


@frozen(kw_only=True)
class BackendFeatures:
    """What a backend offers beyond the protocol.

    Args:
        persistent: another handle on the same place finds what the first one wrote.
        shared: handles on the same place may write at the same time, as several processes do.
    """

    persistent: bool = False
    shared: bool = False


async def await_call(call: Callable[[], Any]) -> Any:
    """What a call gives: a sync function's from a worker thread, an async one's awaited."""
    # Within a tuple: trio takes a coroutine that comes out of a thread for a mistake.
    (made,) = await anyio.to_thread.run_sync(lambda: (call(),), abandon_on_cancel=True)
    return await made if inspect.isawaitable(made) else made


class Files:
    """A backend as the tools use it: a sync method in a worker thread, an async one awaited.

    Args:
        backend: what is to be proved.
    """

    def __init__(self, backend: BackendProtocol) -> None:
        self.backend = backend

    async def _do(self, method: str, *args: Any, **options: Any) -> Any:
        return await await_call(partial(getattr(self.backend, method), *args, **options))

    async def write(self, path: str, contents: str) -> None:
        """Write a file."""
        await self._do("write", path, contents)

    async def write_all(self, files: Mapping[str, str]) -> None:
        """Write several files."""
        for path, contents in files.items():
            await self.write(path, contents)

    async def read(self, path: str, **page: int) -> list[str]:
        """Numbered lines."""
        text: str = await self._do("read", path, **page)
        assert isinstance(text, str)
        return text.removesuffix("\n").split("\n") if text else []

    async def lines(self, path: str) -> list[str]:
        """All lines, without their numbers."""
        return [line.partition("\t")[2] for line in await self.read(path, offset=0, limit=0)]

    async def edit(self, path: str, old: str, new: str) -> None:
        """Edit a file."""
        await self._do("edit", path, old, new)

    async def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        """A listing."""
        return list(await self._do("ls", path, recursive=recursive))

    async def tree(self, path: str = "/", *, recursive: bool = True) -> list[str]:
        """The paths in a listing, those of directories with a slash at their ends."""
        return [f"{i.path}/" if i.is_dir else i.path for i in await self.ls(path, recursive=recursive)]

    async def glob(self, pattern: str, path: str = "/") -> list[str]:
        """The paths that match."""
        found: list[FileInfo] = list(await self._do("glob", pattern, path=path, timeout_s=20.0))
        assert not any(info.is_dir for info in found), "a directory is not a file that matches"
        return [info.path for info in found]

    async def grep(self, pattern: str, path: str = "/", *, recursive: bool = True) -> list[tuple[str, int, str]]:
        """The lines that match."""
        found: list[GrepMatch] = list(await self._do("grep", pattern, path=path, recursive=recursive))
        assert all(isinstance(match, GrepMatch) for match in found)
        return [(match.path, match.line, match.text) for match in found]

    async def code_of(self, method: str, *args: Any, **options: Any) -> str:
        """The code that a call fails with; ``""`` where it does not fail."""
        try:
            await self._do(method, *args, **options)
        except BackendError as e:
            return e.code
        return ""


#: Opens one more handle on the place of this test.
OpenFiles: TypeAlias = Callable[[], Awaitable[Files]]


@pytest.mark.anyio
class BackendPromises(Contract):
    """The fixtures of the promises."""

    features: ClassVar[BackendFeatures] = BackendFeatures()

    def make_backend(self, folder: Path) -> BackendProtocol | Awaitable[BackendProtocol]:
        """A backend without files; may be a coroutine function.

        Args:
            folder: an empty directory; the same for all handles of one test.
        """
        raise NotImplementedError(f"{type(self).__name__} needs make_backend(self, folder), which gives a backend")

    async def close_backend(self, backend: BackendProtocol) -> None:
        """Close a handle: awaits its ``aclose()`` or calls its ``close()`` where it has one."""
        await close_handle(backend)

    @pytest.fixture
    async def open_files(self, tmp_path: Path) -> AsyncIterator[OpenFiles]:
        """Opens handles on this test's place; all are closed at its end."""
        async with opening(tmp_path / "files", self.make_backend, self.close_backend, Files) as one_more:
            yield one_more

    @pytest.fixture
    async def files(self, open_files: OpenFiles) -> Files:
        """One handle."""
        return await open_files()
