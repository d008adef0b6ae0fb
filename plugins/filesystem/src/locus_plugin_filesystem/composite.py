"""`CompositeBackend`: several backends as one tree of files, by the beginning of a path."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from attrs import evolve

from locus.core.errors import ConfigError
from locus.files import MAX_MATCHES, BackendError, BackendProtocol, FileInfo, FileStore, GrepMatch, virtual_path
from locus_plugin_filesystem.matching import SECONDS, PathPattern
from locus_plugin_filesystem.steps import Steps, take, take_async
from locus_plugin_filesystem.tools import as_backend

__all__ = ["CompositeBackend"]

_CALLS = ("write", "read", "edit", "ls", "glob", "grep")


class _Mount(NamedTuple):
    """A backend and where its root is: ``""``, or ``"/memories"``."""

    prefix: str
    backend: BackendProtocol

    def outer(self, path: str) -> str:
        return f"{self.prefix}{path}" if path != "/" else self.prefix or "/"


class CompositeBackend:
    """Backends as one tree: ``CompositeBackend(FilesystemBackend("work"), {"/memories/": StoreBackend("long.db")})``.

    A path belongs to the backend with the longest route that it begins with, which sees it without that route; what is
    not on a route belongs to the default. Routes are directories of the tree: listings show them, searches go through
    them within one bound of time, and what the default has below them cannot be seen.

    Its methods are sync where those of all its backends are, and async where one of them has async ones.

    Args:
        default: the backend of everything else.
        routes: backends by the path of a directory.

    Raises:
        ConfigError: a route is the root, is not a path, or is there twice.
    """

    def __new__(
        cls,
        default: BackendProtocol | FileStore,
        routes: Mapping[str, BackendProtocol | FileStore],
    ) -> CompositeBackend:
        """The class of whatever these backends need."""
        every = [as_backend(each) for each in (default, *routes.values())]
        is_async = any(inspect.iscoroutinefunction(getattr(each, name)) for each in every for name in _CALLS)
        return super().__new__(_AsyncCompositeBackend if is_async and cls is CompositeBackend else cls)

    def __init__(
        self,
        default: BackendProtocol | FileStore,
        routes: Mapping[str, BackendProtocol | FileStore],
    ) -> None:
        mounts: dict[str, BackendProtocol] = {}
        for route, backend in routes.items():
            try:
                prefix = virtual_path(route)
            except BackendError as e:
                raise ConfigError(f"the route {route!r:.100} is not a path ({e.code})") from e
            if prefix == "/" or prefix in mounts:
                problem = "the root belongs to the default" if prefix == "/" else f"{prefix!r} has a backend already"
                raise ConfigError(f"the route {route!r:.100} cannot be used: {problem}")
            mounts[prefix] = as_backend(backend)
        self.default = as_backend(default)
        self.routes = mounts
        # Longest first: the first that a path begins with is its own.
        self._mounts = [_Mount(each, mounts[each]) for each in sorted(mounts, key=len, reverse=True)]

    def __repr__(self) -> str:
        return f"CompositeBackend({self.default!r}, {self.routes!r})"

    def _take(self, steps: Steps[Any]) -> Any:
        return take(steps)

    # -- one file -----------------------------------------------------------------------------------

    def write(self, path: str, contents: str) -> Any:
        """See `locus.files.BackendProtocol.write`; gives the path."""
        path = virtual_path(path)
        return self._take(self._one(path, "write", contents, result=path))

    def read(self, path: str, offset: int = 0, limit: int = 100) -> Any:
        """See `locus.files.BackendProtocol.read`."""
        return self._take(self._one(virtual_path(path), "read", offset=offset, limit=limit))

    def read_start(self, path: str, size: int) -> Any:
        """The first bytes of a file, at most ``size``; none where its backend gives lines alone."""
        path = virtual_path(path)
        has_bytes = hasattr(self._owner(path)[0].backend, "read_start")
        return self._take(self._one(path, "read_start", size)) if has_bytes else b""

    def edit(self, path: str, old: str, new: str) -> Any:
        """See `locus.files.BackendProtocol.edit`; gives the path."""
        path = virtual_path(path)
        return self._take(self._one(path, "edit", old, new, result=path))

    def _one(self, path: str, method: str, *args: Any, result: Any = None, **options: Any) -> Steps[Any]:
        mount, inner = self._owner(path)
        if self._below(path):
            raise BackendError("is_directory", path)
        try:
            made = yield partial(getattr(mount.backend, method), inner, *args, **options)
        except BackendError as e:
            raise _rename(e, inner, path) from e
        except ValueError as e:
            raise ValueError(str(e).replace(inner, path, 1)) from e
        return made if result is None else result

    # -- many files ---------------------------------------------------------------------------------

    def ls(self, path: str = "/", recursive: bool = False, timeout_s: float = SECONDS) -> Any:  # noqa: FBT001, FBT002 - as upstream has it
        """See `locus.files.BackendProtocol.ls`; routes are directories."""
        return self._take(self._ls(virtual_path(path), timeout_s, recursive=recursive))

    def _ls(self, path: str, timeout_s: float, *, recursive: bool) -> Steps[list[FileInfo]]:
        until = time.monotonic() + timeout_s
        entries: dict[str, FileInfo] = {}
        mount, inner = self._owner(path)
        below = self._below(path)
        for each in (mount, *(below if recursive else ())):
            start = inner if each is mount else "/"
            # A route is a directory, also where its backend has nothing yet.
            found = yield from _ask(
                partial(each.backend.ls, start, recursive=recursive),
                until,
                (start, path),
                missing=start == "/" or bool(below),
            )
            entries.update((info.path, info) for info in self._own(each, found or ()))
        start = path.rstrip("/")
        for each in below:
            # The directories on the way to it, which no backend needs to have.
            names = each.prefix[len(start) + 1 :].split("/")
            for depth in range(1, (len(names) if recursive else 1) + 1):
                place = f"{start}/{'/'.join(names[:depth])}"
                entries.setdefault(place, FileInfo(place, is_dir=True))
        return [entries[each] for each in sorted(entries)]

    def glob(self, pattern: str, path: str = "/", timeout_s: float = 20.0) -> Any:
        """See `locus.files.BackendProtocol.glob`; the bound of time is one for all backends."""
        return self._take(self._glob(pattern, virtual_path(path), timeout_s))

    def _glob(self, pattern: str, path: str, timeout_s: float) -> Steps[list[FileInfo]]:
        until = time.monotonic() + timeout_s
        wanted = PathPattern(pattern, path)
        mount, inner = self._owner(path)
        below = self._below(path)
        missing = inner == "/" or bool(below)
        names = inner, path
        if pattern.startswith("/") and mount.prefix:
            found = yield from _ask(partial(mount.backend.ls, inner, recursive=True), until, names, missing=missing)
            matches = [info for info in self._own(mount, found or ()) if not info.is_dir and wanted.matches(info.path)]
        else:
            found = yield from _ask(partial(mount.backend.glob, pattern, path=inner), until, names, missing=missing)
            matches = self._own(mount, found or ())
        for each in below if "/" in pattern or "**" in pattern else ():
            # The pattern is seen from further up: everything there is compared with it here.
            found = yield from _ask(partial(each.backend.ls, "/", recursive=True), until, ("/", path), missing=True)
            matches += [i for i in self._own(each, found or ()) if not i.is_dir and wanted.matches(i.path)]
        return sorted(matches, key=lambda info: info.path)

    def grep(self, pattern: str, path: str = "/", recursive: bool = True, timeout_s: float = SECONDS) -> Any:  # noqa: FBT001, FBT002 - as upstream has it
        """See `locus.files.BackendProtocol.grep`; matches and the bound of time are counted over all backends."""
        return self._take(self._grep(pattern, virtual_path(path), timeout_s, recursive=recursive))

    def _grep(self, pattern: str, path: str, timeout_s: float, *, recursive: bool) -> Steps[list[GrepMatch]]:
        until = time.monotonic() + timeout_s
        mount, inner = self._owner(path)
        below = self._below(path)
        matches: list[GrepMatch] = []
        for each in (mount, *(below if recursive else ())):
            start = inner if each is mount else "/"
            found = yield from _ask(
                partial(each.backend.grep, pattern, path=start, recursive=recursive),
                until,
                (start, path),
                missing=start == "/" or bool(below),
            )
            matches += [
                GrepMatch(each.outer(match.path), match.line, match.text)
                for match in found or ()
                if self._owner(each.outer(match.path))[0].prefix == each.prefix
            ]
        return sorted(matches, key=lambda match: (match.path, match.line))[:MAX_MATCHES]

    # -- routes -------------------------------------------------------------------------------------

    def _owner(self, path: str) -> tuple[_Mount, str]:
        """Whose a path is, and how that backend calls it."""
        for mount in self._mounts:
            if path == mount.prefix or path.startswith(f"{mount.prefix}/"):
                return mount, path[len(mount.prefix) :] or "/"
        return _Mount("", self.default), path

    def _below(self, path: str) -> list[_Mount]:
        """The routes below a directory."""
        start = f"{path.rstrip('/')}/"
        return [mount for mount in self._mounts if mount.prefix.startswith(start)]

    def _own(self, mount: _Mount, found: Iterable[FileInfo]) -> list[FileInfo]:
        """What a backend has listed, as seen from outside, without what is hidden by longer routes."""
        outer = (evolve(info, path=mount.outer(info.path)) for info in found)
        return [info for info in outer if self._owner(info.path)[0].prefix == mount.prefix]


class _AsyncCompositeBackend(CompositeBackend):
    """The same where one of the backends is async."""

    async def write(self, path: str, contents: str) -> Any:
        """See `CompositeBackend.write`."""
        return await super().write(path, contents)

    async def read(self, path: str, offset: int = 0, limit: int = 100) -> Any:
        """See `CompositeBackend.read`."""
        return await super().read(path, offset, limit)

    async def edit(self, path: str, old: str, new: str) -> Any:
        """See `CompositeBackend.edit`."""
        return await super().edit(path, old, new)

    async def ls(self, path: str = "/", recursive: bool = False, timeout_s: float = SECONDS) -> Any:  # noqa: FBT001, FBT002 - as upstream has it
        """See `CompositeBackend.ls`."""
        return await super().ls(path, recursive=recursive, timeout_s=timeout_s)

    async def glob(self, pattern: str, path: str = "/", timeout_s: float = 20.0) -> Any:
        """See `CompositeBackend.glob`."""
        return await super().glob(pattern, path=path, timeout_s=timeout_s)

    async def grep(self, pattern: str, path: str = "/", recursive: bool = True, timeout_s: float = SECONDS) -> Any:  # noqa: FBT001, FBT002 - as upstream has it
        """See `CompositeBackend.grep`."""
        return await super().grep(pattern, path=path, recursive=recursive, timeout_s=timeout_s)

    def _take(self, steps: Steps[Any]) -> Any:
        return take_async(steps)


def _ask(call: partial[Any], until: float, names: tuple[str, str], *, missing: bool) -> Steps[Any]:
    """A call that takes no longer than what is left, where its backend can be told; None where nothing is there.

    Args:
        call: of a backend.
        until: by the monotonic clock.
        names: what its backend calls the directory, and what the caller does.
        missing: whether nothing needs to be there.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise BackendError("timeout", "the bound of time was used up; look below a smaller directory")
    if "timeout_s" in inspect.signature(call.func).parameters:
        call = partial(call, timeout_s=left)
    try:
        return (yield call)
    except BackendError as e:
        if e.code == "file_not_found" and missing:
            return None
        raise _rename(e, *names) from e


def _rename(error: BackendError, inner: str, path: str) -> BackendError:
    """An error that names a path as it was asked for."""
    if error.code in ("invalid_pattern", "timeout"):  # which are about no path
        return BackendError(error.code, error.detail)
    is_named = inner != "/" and inner in error.detail
    return BackendError(error.code, error.detail.replace(inner, path, 1) if is_named else path)
