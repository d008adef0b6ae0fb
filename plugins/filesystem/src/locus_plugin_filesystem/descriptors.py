"""Opening what is below a directory, and nothing else, whatever is renamed or linked meanwhile.

A check of a path is worth nothing by the time it is opened: another process may swap a directory for a link in between.
So nothing is checked before: every path is resolved from a descriptor of the root by the system itself. Linux does that
in one call, ``openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)``, which follows links as long as they stay below the
root. Elsewhere each part of a path is opened from the descriptor of the one before with ``O_NOFOLLOW``, so no link is
followed at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import unicodedata
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from locus.core.errors import ConfigError
from locus.files import BackendError
from locus.plugin import Lazy

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Lazy("ctypes")

__all__ = ["Root", "can_resolve_beneath", "error_of", "find_form", "is_temporary", "reading", "temporary_name"]

#: The number of ``openat2`` on every architecture of Linux but alpha.
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08

#: A rename anywhere on the system while ``..`` was resolved; the kernel asks to try again.
_TRIES = 100

_ALWAYS = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: Opening a FIFO must not wait for a writer.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

#: To look at something without opening it, where a system has that.
_LOOK = getattr(os, "O_PATH", _FILE)

_PREFIX, _SUFFIX = ".locus-", ".tmp"

_DENIED = {
    errno.EXDEV: "it leads out of the directory",
    errno.ELOOP: "links are not followed here",
    errno.ENOSPC: "no room is left on the disk",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EFBIG: "files may not become that large here",
    errno.EROFS: "the disk is read-only",
    errno.ENXIO: "it is not a regular file",
}


def temporary_name() -> str:
    """A name for a file that is being written."""
    return f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Whether a name is one of those: the file of a write that is under way, or whose process died."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX) and len(name) == len(_PREFIX) + len(_SUFFIX) + 16


def error_of(error: OSError, path: str) -> BackendError:
    """What a model hears of an error of the system.

    Args:
        error: as it was raised.
        path: as the model knows it; no other path is in the message.
    """
    number = error.errno or 0
    if number in (errno.ENOENT, errno.ENOTDIR):
        return BackendError("file_not_found", path)
    if number == errno.EISDIR:
        return BackendError("is_directory", path)
    if number in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
        return BackendError("invalid_path", path)
    if number == errno.EAGAIN:
        return BackendError("conflict", f"{path}: directories were renamed meanwhile; try again")
    return BackendError("permission_denied", f"{path}: {_DENIED.get(number) or os.strerror(number).lower()}")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Errors of the system become what a model hears of them, see `error_of`."""
    try:
        yield
    except OSError as e:
        raise error_of(e, path) from e


def find_form(name: str, is_there: Callable[[str], bool]) -> str:
    """A name as a disk has it: as it is, or decomposed (NFD) where only that is there, as macOS and archives have it.

    Args:
        name: a name as it is in a path.
        is_there: whether its directory has a name.
    """
    decomposed = unicodedata.normalize("NFD", name)
    return decomposed if decomposed != name and not is_there(name) and is_there(decomposed) else name


class Root:
    """A directory, and what is opened below it. Safe to use from several threads.

    Args:
        path: the directory, which is created where it is missing.
        walk: open parts one by one also where the system could resolve a path by itself.

    Raises:
        ConfigError: it is not a directory, or this system has no descriptors of directories.
    """

    def __init__(self, path: str | os.PathLike[str], *, walk: bool = False) -> None:
        self.path = Path(path).expanduser().absolute()
        if os.open not in os.supports_dir_fd or os.scandir not in os.supports_fd:  # pragma: no cover - Windows
            raise ConfigError(f"files in {self.path}: this system cannot open files relative to a directory")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, _DIRECTORY | _ALWAYS)
        except OSError as e:
            raise ConfigError(f"the root of files {str(self.path)!r} cannot be used: {e.strerror or e}") from e
        #: Whether links that stay below the root are followed.
        self.follows_links = not walk and can_resolve_beneath()
        self._close = weakref.finalize(self, os.close, self._fd)

    def close(self) -> None:
        """Close the descriptor; nothing can be opened after that."""
        self._close()

    def _open(self, relative: str, flags: int, *, links: bool = True) -> int:
        if not self._close.alive:
            raise OSError(errno.EBADF, "the backend was closed")
        if self.follows_links:
            return _openat2(self._fd, relative, flags | _ALWAYS, _BENEATH | (_NO_MAGICLINKS if links else _NO_SYMLINKS))
        return _walk(self._fd, relative, flags | _ALWAYS)

    def _open_any_form(self, path: str, flags: int, *, links: bool = True) -> int:
        """Open what exists: paths are NFC, names on a disk need not be."""
        relative = path[1:] or "."
        try:
            return self._open(relative, flags, links=links)
        except FileNotFoundError:
            spelled = self._spell(relative, links=links)
            if spelled == relative:
                raise
            return self._open(spelled, flags, links=links)

    def _spell(self, relative: str, *, links: bool) -> str:
        """A path with each of its names in the form that it has on the disk; those that are not there stay."""
        spelled = ""
        for name in relative.split("/"):
            spelled += f"{find_form(name, partial(self._is_there, spelled, links))}/"
        return spelled[:-1]

    def _is_there(self, above: str, links: bool, name: str) -> bool:  # noqa: FBT001  # for a partial
        try:
            os.close(self._open(f"{above}{name}", _LOOK | _NO_FOLLOW, links=links))
        except FileNotFoundError:
            return False
        except OSError:  # it may not be looked at, or a link, which is something as well
            return True
        return True

    @contextmanager
    def file(self, path: str, *, links: bool = True) -> Iterator[tuple[int, os.stat_result]]:
        """A descriptor to read a regular file.

        Args:
            path: see `locus.files.virtual_path`.
            links: whether to follow links where that is possible.

        Raises:
            BackendError: it does not exist, or is not a regular file below the root.
        """
        with reading(path):
            fd = self._open_any_form(path, _FILE, links=links)
        try:
            with reading(path):
                found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise BackendError("is_directory", path)
            if not stat.S_ISREG(found.st_mode):
                raise BackendError("permission_denied", f"{path}: {_DENIED[errno.ENXIO]}")
            yield fd, found
        finally:
            os.close(fd)

    @contextmanager
    def directory(self, path: str, *, links: bool = True) -> Iterator[int]:
        """A descriptor of a directory.

        Args:
            path: see `locus.files.virtual_path`.
            links: whether to follow links where that is possible.

        Raises:
            BackendError: it does not exist, or is not a directory below the root.
        """
        with reading(path):
            fd = self._open_any_form(path, _DIRECTORY, links=links)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def directory_made(self, path: str) -> Iterator[int]:
        """A descriptor of a directory, which is made with its parents where they are missing.

        Raises:
            BackendError: part of it is not a directory, leads out of the root, or may not be made.
        """
        fd = self._make(path)
        try:
            yield fd
        finally:
            os.close(fd)

    def _make(self, path: str) -> int:
        try:
            with contextlib.suppress(FileNotFoundError):
                return self._open_any_form(path, _DIRECTORY)
            parent, _, name = path.rpartition("/")
            above = self._make(parent or "/")
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
                # Seen from the root again: what was made may have been swapped for a link by now.
                return self._open_any_form(path, _DIRECTORY)
            finally:
                os.close(above)
        except NotADirectoryError as e:
            raise BackendError("invalid_path", f"{path}: part of it is a file") from e
        except OSError as e:
            raise error_of(e, path) from e

    def exists(self, path: str) -> os.stat_result | None:
        """What is there, seen through links where they stay below the root; None where that is nothing."""
        try:
            fd = self._open_any_form(path, _LOOK)
        except OSError:
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)


def _walk(root: int, relative: str, flags: int) -> int:
    """Open a path part by part; a link anywhere in it is an error."""
    *above, last = relative.split("/")
    at = root
    try:
        for part in above:
            below = _step(at, part, _DIRECTORY | _ALWAYS)
            if at != root:
                os.close(at)
            at = below
        return _step(at, last, flags)
    finally:
        if at != root:
            os.close(at)


def _step(at: int, part: str, flags: int) -> int:
    try:
        return os.open(part, flags | _NO_FOLLOW, dir_fd=at)
    except NotADirectoryError:
        # Also what the system says of a link where a directory is asked for.
        if not stat.S_ISLNK(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode):
            raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


@cache
def can_resolve_beneath() -> bool:
    """Whether this system has ``openat2``: Linux from 5.6, unless a sandbox forbids it."""
    if not sys.platform.startswith("linux") or os.uname().machine == "alpha":
        return False
    try:
        here = os.open("/", _DIRECTORY | _ALWAYS)
    except OSError:
        return False
    try:
        os.close(_openat2(here, ".", _DIRECTORY | _ALWAYS, _BENEATH | _NO_MAGICLINKS))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


@cache
def _syscall() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    made: Callable[..., int] = function
    return made


def _openat2(root: int, relative: str, flags: int, resolve: int) -> int:
    # struct open_how: flags, mode and resolve, 64 bits each.
    how = flags.to_bytes(8, sys.byteorder) + bytes(8) + resolve.to_bytes(8, sys.byteorder)
    name = os.fsencode(relative)
    number = errno.EAGAIN
    for _ in range(_TRIES):
        fd = _syscall()(_OPENAT2, root, name, how, len(how))
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), relative)
