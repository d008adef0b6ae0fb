"""`FilesystemBackend`: the files of a directory, and none outside of it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

from locus.files import MAX_MATCHES, BackendError, FileInfo, GrepMatch, virtual_path
from locus_plugin_filesystem.descriptors import Root, find_form, reading, temporary_name
from locus_plugin_filesystem.matching import SECONDS, Deadline, PathPattern
from locus_plugin_filesystem.text import LineSearch, decode, encode, number_lines, replace_once
from locus_plugin_filesystem.tree import entries_below

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

__all__ = ["FilesystemBackend", "read_content"]

#: Bytes of a file that `edit` and `grep` read.
_LARGEST = 50_000_000

#: Links to files that a write follows, one after the other.
_LINKS = 8
#: Bytes that are read at a time.
_CHUNK = 1_000_000


class FilesystemBackend:
    """Files in a directory of this machine; agents see it as ``/``.

    No path, no link and no directory that is renamed meanwhile leads out: nothing outside of the directory is read,
    listed or written (see `locus_plugin_filesystem.descriptors`). Where the system resolves paths below a directory by
    itself (Linux 5.6), links are followed as long as they stay inside; elsewhere they are not followed. Listings leave
    out what could not be read: links that lead outside or nowhere, sockets, devices, names that no path can have.

    A write is complete or did not happen: the content goes into a new file that takes the place of the old one, so a
    hard link to a file outside is cut and not written through. Reading a hard link cannot be told from reading any
    other file. Edits of one file by several processes exclude each other.

    Methods block; call them in a thread where an event loop runs. Safe to use from several threads.

    Args:
        root: the directory, which is created where it is missing.
        links: whether links that stay below the root are followed, where the system can resolve them safely.

    Raises:
        ConfigError: it is not a directory, or this system cannot open files relative to one.
    """

    def __init__(self, root: str | os.PathLike[str], *, links: bool = True) -> None:
        self._root = Root(root, walk=not links)
        #: The directory, absolute.
        self.root = self._root.path

    def __repr__(self) -> str:
        return f"FilesystemBackend({str(self.root)!r})"

    def close(self) -> None:
        """Close the descriptor of the directory; a backend that is dropped closes it as well."""
        self._root.close()

    # -- one file -----------------------------------------------------------------------------------

    def write(self, path: str, contents: str) -> str:
        """Create or replace a file, its parent directories included; gives its path.

        Raises:
            BackendError: ``is_directory``; ``invalid_path``, also where a part of the path is a file; ``not_text``: it
                has no form in UTF-8; ``permission_denied``, also where no room is left: then the old content is kept.
        """
        path = virtual_path(path)
        data = encode(contents)
        with self._place(path) as (directory, name):
            self._replace(directory, name, data, path)
        return path

    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        """Lines of a text file with their numbers, see `locus.files.BackendProtocol.read`.

        Raises:
            BackendError: ``file_not_found``, ``is_directory``, ``permission_denied``, ``not_text``; ``too_large``: the
                lines are not in the first 50 MB.
        """
        path = virtual_path(path)
        with self._root.file(path) as (fd, _), reading(path):
            data = read_content(fd, max(offset, 0) + limit if limit > 0 else None)
        if data is None:
            raise BackendError("too_large", f"{path}: the lines are not within its first {_LARGEST:,} bytes")
        return number_lines(decode(data), offset, limit)

    def read_start(self, path: str, size: int) -> bytes:
        """The first bytes of a file, at most ``size``; errors as for `read`."""
        with self._root.file(virtual_path(path)) as (fd, _), reading(path), os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(size)

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace the only occurrence of a text; gives the path.

        Raises:
            ValueError: the text does not occur, or more than once.
            BackendError: as for `read` and `write`; ``too_large``; ``conflict``: another program has
                replaced it meanwhile.
        """
        path = virtual_path(path)
        with self._root.file(path):
            pass  # before parents would be made
        with self._place(path) as (directory, name):
            with self._root.file(path) as (fd, found), reading(path):
                data = read_content(fd)
            if data is None:
                raise BackendError("too_large", f"{path} has more than {_LARGEST:,} bytes")
            changed = encode(replace_once(decode(data), old, new, path))
            self._replace(directory, name, changed, path, found)
        return path

    @contextmanager
    def _place(self, path: str) -> Iterator[tuple[int, str]]:
        """The directory, locked, and the name there of a file that is to be written, behind links that stay inside."""
        parent, name = os.path.split(path)
        for followed in range(_LINKS):
            if not name:
                raise BackendError("is_directory", path)
            with self._root.directory_made(parent) as directory:
                with reading(path):
                    if not followed:  # what is in a link is a name on the disk already
                        name = find_form(name, partial(_has, directory))
                    target = _link(directory, name)
                if target is None:
                    with _lock(directory):
                        yield directory, name
                    return
            if not self._root.follows_links or target.startswith("/"):
                break
            # The system resolves what is in the link, `..` behind other links included, and stays below the root.
            below, name = os.path.split(target)
            parent = f"{parent.rstrip('/')}/{below}" if below else parent
            name = "" if name in (".", "..") else name
            try:
                with self._root.directory(parent):
                    pass
            except BackendError as e:  # which names what the link says
                raise BackendError(
                    e.code, f"{path}: it is a link, and what it leads to is missing, or beyond the root"
                ) from None
        raise BackendError("permission_denied", f"{path}: it is a link, which is not followed")

    def _replace(
        self, directory: int, name: str, data: bytes, path: str, expected: os.stat_result | None = None
    ) -> None:
        """Let a new file take the place of a name. The name is looked at first, and never followed."""
        with reading(path):
            old = _look(directory, name)
            if old is not None and stat.S_ISDIR(old.st_mode):
                raise BackendError("is_directory", path)
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise BackendError("permission_denied", f"{path}: it is not a regular file")
            if old is not None and not old.st_mode & 0o222:
                raise BackendError("permission_denied", f"{path}: it is read-only")
            temporary = temporary_name()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o666 if old is None else 0o600, dir_fd=directory)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    file.flush()
                    if old is not None:
                        os.fchmod(fd, stat.S_IMODE(old.st_mode) & 0o777)
                    os.fsync(fd)
                if expected is not None and _identity(expected) != _identity(_look(directory, name)):
                    raise BackendError("conflict", f"{path} was replaced by another program meanwhile")
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=directory)
                raise
            os.fsync(directory)

    # -- many files ---------------------------------------------------------------------------------

    def ls(self, path: str = "/", recursive: bool = False, timeout_s: float = SECONDS) -> list[FileInfo]:  # noqa: FBT001, FBT002 - as upstream has it
        """The entries of a directory, or everything below it, by path; a file is its own only entry.

        Args:
            path: the directory.
            recursive: whether to list what is in its directories as well.
            timeout_s: seconds, looked at for every entry.

        Raises:
            BackendError: ``file_not_found``, ``permission_denied``, ``timeout``.
        """
        entries = entries_below(self._root, virtual_path(path), Deadline(timeout_s), recursive=recursive)
        return sorted((entry.info() for entry in entries), key=lambda info: info.path)

    def glob(self, pattern: str, path: str = "/", timeout_s: float = SECONDS) -> list[FileInfo]:
        """The files below a directory that match a pattern, by path.

        Args:
            pattern: see `locus.files.BackendProtocol.glob`.
            path: the directory that the pattern is seen from.
            timeout_s: seconds, looked at for every entry.

        Raises:
            BackendError: ``invalid_pattern``, ``file_not_found``, ``permission_denied``, ``timeout``.
        """
        path = virtual_path(path)
        wanted = PathPattern(pattern, path)
        entries = entries_below(self._root, path, Deadline(timeout_s), recursive=True)
        return [entry.info() for entry in entries if not entry.is_dir and wanted.matches(entry.shown)]

    def grep(
        self,
        pattern: str,
        path: str = "/",
        recursive: bool = True,  # noqa: FBT001, FBT002 - as upstream has it
        timeout_s: float = SECONDS,
    ) -> list[GrepMatch]:
        """The lines that a regular expression finds, by path and line, at most `locus.files.MAX_MATCHES`.

        Files that have a NUL byte in their first 8 kB or more than 50 MB are left out, and so are links: what they
        lead to is searched where it is.

        Args:
            pattern: see `locus.files.BackendProtocol.grep`.
            path: a file, or a directory.
            recursive: whether to look below subdirectories as well.
            timeout_s: seconds, looked at for every entry.

        Raises:
            BackendError: ``invalid_pattern``, ``file_not_found``, ``permission_denied``, ``timeout``.
        """
        path = virtual_path(path)
        search, deadline = LineSearch(pattern), Deadline(timeout_s)
        matches: list[GrepMatch] = []
        for entry in entries_below(self._root, path, deadline, recursive=recursive):
            if entry.is_dir or (entry.is_link and entry.shown != path):
                continue
            data = None
            with contextlib.suppress(BackendError, OSError), self._root.file(entry.path) as (fd, _):
                data = read_content(fd)  # nothing where it vanished, or may not be read
            if data is not None:
                matches += search.matches(entry.shown, data, MAX_MATCHES - len(matches), deadline.check)
            if len(matches) >= MAX_MATCHES:
                break
        return matches


@contextmanager
def _lock(directory: int) -> Iterator[None]:
    """Keep others who edit in a directory out. The lock ends with the descriptor, also when the process dies."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(directory, fcntl.LOCK_EX)
    yield


def read_content(fd: int, lines: int | None = None) -> bytes | None:
    """A file, by what is read and not by what it says of its size; None where that is too much.

    Args:
        fd: its descriptor.
        lines: how many lines are enough; None = all.
    """
    read, size, ends = [], 0, 0
    with os.fdopen(fd, "rb", buffering=0, closefd=False) as file:
        while chunk := file.read(_CHUNK):
            read.append(chunk)
            size += len(chunk)
            if size > _LARGEST:
                return None
            if lines is not None:
                ends += chunk.count(b"\n")
                if ends >= lines:
                    # Up to an end of a line, so that no character is cut.
                    read[-1] = chunk[: chunk.rindex(b"\n") + 1]
                    break
    return b"".join(read)


def _look(directory: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _has(directory: int, name: str) -> bool:
    return _look(directory, name) is not None


def _link(directory: int, name: str) -> str | None:
    """What a link says; None for whatever is not one."""
    found = _look(directory, name)
    if found is None or not stat.S_ISLNK(found.st_mode):
        return None
    return os.readlink(name, dir_fd=directory)


def _identity(found: os.stat_result | None) -> tuple[int, ...]:
    return () if found is None else (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
