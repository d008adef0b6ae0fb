"""`OCIBucketFiles`: what ``backend="oci:bucket/prefix"`` is, a `locus.files.FileStore`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from locus.files import BackendError, FileContent, FileInfo, virtual_path
from locus_plugin_oci.bucket import checked_place
from locus_plugin_oci.credentials import Credentials
from locus_plugin_oci.errors import StoreClosed
from locus_plugin_oci.objects import ANY, ObjectInfo, Objects, OutcomeUnknown, Place
from locus_plugin_oci.ownership import Threaded
from locus_plugin_oci.settings import OciSettings
from locus_plugin_oci.worker import Worker, wait_for

__all__ = ["OCIBucketFiles", "make"]

T = TypeVar("T")

#: Bytes of the name of an object.
_LONGEST = 1024


class _Engine:
    """What lives in the thread of the files."""

    def __init__(self, place: Place, settings: OciSettings) -> None:
        self.objects = Objects(place, Credentials(settings))
        self.worker = Worker(self.objects.session, f"locus-oci files {place.bucket}")


class OCIBucketFiles(Threaded[_Engine]):
    """Whole files in a bucket of OCI Object Storage, one object each, named by its path behind the prefix.

    A save with a version is a ``PUT`` with ``if-match``: of two processes that edit a file one wins, the other one
    gets ``conflict``. Directories are what names have in common. That a new file takes the place of none of them is
    looked at before, so two processes that create ``/a`` and ``/a/b`` in the same moment are not kept apart.

    Nothing is asked before the first call. Requests are made in a thread of its own, whatever the caller's event loop.
    Close it with ``await files.aclose()`` or ``async with``; what is dropped closes itself.

    Args:
        bucket: its name. It must exist.
        prefix: of the names of all objects.
        settings: who signs, and the rest; None = the defaults.

    Raises:
        ConfigError: the bucket or the prefix cannot be the name of one.
    """

    def __init__(self, bucket: str, *, prefix: str = "files", settings: OciSettings | None = None) -> None:
        self.settings = settings or OciSettings()
        self._place = checked_place(bucket, prefix, self.settings)
        self.bucket, self.prefix = bucket, self._place.prefix.rstrip("/")
        super().__init__(partial(_Engine, self._place, self.settings))

    def __repr__(self) -> str:
        return f"OCIBucketFiles({self.bucket!r}, prefix={self.prefix!r})"

    async def _do(self, work: Callable[[Objects], Coroutine[Any, Any, T]]) -> T:
        engine = self._running()
        future = engine.worker.submit(lambda: work(engine.objects))
        if future is None:
            raise StoreClosed(f"the files of bucket {self.bucket!r} were closed; open them again", store="oci")
        return await wait_for(future)

    # -- the protocol -------------------------------------------------------------------------------

    async def load(self, path: str) -> FileContent:
        """See `locus.files.FileStore.load`.

        Raises:
            BackendError: ``file_not_found``, ``is_directory``.
            BucketProblem: the service failed.
        """
        path = virtual_path(path)

        async def load(objects: Objects) -> FileContent:
            found = await objects.get(_name(path)) if path != "/" else None
            if found is None:
                raise await _missing(objects, path)
            return FileContent(found.body, found.etag)

        return await self._do(load)

    async def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        """See `locus.files.FileStore.save`.

        Raises:
            BackendError: ``is_directory``, ``invalid_path``, ``conflict``.
            BucketProblem: the service failed; nothing was written, or it is not known.
        """
        path = virtual_path(path)

        async def save(objects: Objects) -> None:
            if not version:
                await _insist_on_room(objects, path)
            # The condition of a PUT: None = it must not exist.
            match = ANY if version is None else version or None
            try:
                written = await objects.put(_name(path), data, match=match)
            except OutcomeUnknown as e:
                now = await objects.get(_name(path))
                if now is None or now.body != data:
                    raise e.problem from e
                return
            if written is None:
                raise BackendError("conflict", f"{path} was changed meanwhile")

        await self._do(save)

    async def remove(self, path: str, *, version: str | None = None) -> None:
        """See `locus.files.FileStore.remove`.

        Raises:
            BackendError: ``file_not_found``, ``is_directory``, ``conflict``.
            BucketProblem: the service failed.
        """
        path = virtual_path(path)

        async def remove(objects: Objects) -> None:
            try:
                if path != "/" and version != "" and await objects.delete(_name(path), match=version or ANY):
                    return
            except OutcomeUnknown as e:
                if await objects.get(_name(path), head=True) is not None:
                    raise e.problem from e
                return
            if path != "/" and await objects.get(_name(path), head=True) is not None:
                raise BackendError("conflict", f"{path} was changed meanwhile")
            raise await _missing(objects, path)

        await self._do(remove)

    async def list(self, folder: str) -> list[FileInfo]:
        """See `locus.files.FileStore.list`.

        Raises:
            BucketProblem: the service failed.
        """
        folder = virtual_path(folder)

        async def listed(objects: Objects) -> list[FileInfo]:
            own = await _first(objects, _name(folder)) if folder != "/" else None
            rows = [own] if own is not None and own.name == _name(folder) else []
            rows += [each async for each in objects.list(f"{_name(folder)}/" if folder != "/" else "")]
            paths = [(_path(each.name), each) for each in rows]
            found = [
                FileInfo(path, size=each.size, modified_at=each.changed) for path, each in paths if path is not None
            ]
            return sorted(found, key=lambda info: info.path)

        return await self._do(listed)


async def _missing(objects: Objects, path: str) -> BackendError:
    return BackendError("is_directory" if await _is_directory(objects, path) else "file_not_found", path)


async def _is_directory(objects: Objects, path: str) -> bool:
    return path == "/" or await _first(objects, f"{_name(path)}/") is not None


async def _first(objects: Objects, prefix: str) -> ObjectInfo | None:
    async with aclosing(objects.list(prefix, limit=1)) as listed:
        async for each in listed:
            return each
    return None


async def _insist_on_room(objects: Objects, path: str) -> None:
    """A new file takes the place of no directory and is below no other file."""
    if path != "/" and await objects.get(_name(path), head=True) is not None:
        return
    if await _is_directory(objects, path):
        raise BackendError("is_directory", path)
    above = path.rpartition("/")[0]
    while above:
        if await objects.get(_name(above), head=True) is not None:
            raise BackendError("invalid_path", f"{path}: {above} is a file")
        above = above.rpartition("/")[0]


def _name(path: str) -> str:
    """The name of an object, without the prefix: the path without its slash.

    Object Storage has no control characters in names; to be safe, whatever is not printable is quoted.
    """
    name = "".join(c if c.isprintable() and c != "%" else "".join(f"%{b:02X}" for b in c.encode()) for c in path[1:])
    if len(name.encode()) > _LONGEST - 401:  # the longest prefix
        raise BackendError("invalid_path", f"{path[:100]}...: names of objects have room for {_LONGEST} bytes")
    return name


def _path(name: str) -> str | None:
    """The path of an object; None where no path has that name, such as that of a folder made in the console."""
    path = f"/{unquote(name, errors='replace')}"
    try:
        return path if virtual_path(path) == path and _name(path) == name else None
    except BackendError:
        return None


def make(rest: str, settings: OciSettings | None = None) -> OCIBucketFiles:
    """The files behind ``"oci:BUCKET"`` or ``"oci:BUCKET/PREFIX"``."""
    bucket, _, prefix = rest.partition("/")
    return OCIBucketFiles(bucket, prefix=prefix or "files", settings=settings)
