"""Files of agents: what a place to keep them must be able to do, and the values that go in and out. No I/O.

A *backend* answers the calls that file tools make (`BackendProtocol`). A *file store* only loads, saves and lists whole
files (`FileStore`); what shows pages of them, matches names and searches text is built on top of one. Write the first
where a service has its own search, and the second where it is a place for bytes.

Paths are those of `virtual_path`: absolute, POSIX, normalised, with ``/`` as the root of the agent's files wherever
these lie. Every method may be sync or async; tools call a sync one in a worker thread, so it must be safe to use from
several.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from locus.core.errors import LocusError
from locus.core.frozen import frozen

__all__ = [
    "MAX_MATCHES",
    "MAX_PAGE_CHARS",
    "BackendError",
    "BackendProtocol",
    "FileContent",
    "FileInfo",
    "FileStore",
    "GrepMatch",
    "IndexedFileStore",
    "MaybeAwaitable",
    "virtual_path",
]

T = TypeVar("T")

#: What a method may return: the value, or something to await for it.
MaybeAwaitable: TypeAlias = T | Awaitable[T]

#: The most matches that `BackendProtocol.grep` returns; a list that is as long may be incomplete.
MAX_MATCHES = 1_000

#: `BackendProtocol.read` may stop after the line with which its text becomes longer than this.
MAX_PAGE_CHARS = 100_000

#: Bytes in UTF-8: what POSIX systems take (``PATH_MAX``, ``NAME_MAX``).
_PATH_BYTES, _NAME_BYTES = 4096, 255

#: Control characters, surrogates, and separators of lines and paragraphs.
_REFUSED = frozenset({"Cc", "Cs", "Zl", "Zp"})


class BackendError(LocusError):
    """A file operation failed in a way that the model should hear of.

    Args:
        code: what tools return as their text: ``"file_not_found"``, ``"is_directory"``, ``"permission_denied"`` or
            ``"invalid_path"``; also ``"invalid_pattern"``, ``"not_text"``, ``"too_large"``, ``"timeout"``, and
            ``"conflict"`` when the file was changed in the meantime.
        detail: a sentence to go with it, or ``""``.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


@frozen
class FileInfo:
    """One entry of a listing.

    Args:
        path: where it is, see `virtual_path`.
        is_dir: whether it is a directory.
        size: bytes; 0 for a directory.
        modified_at: when it was last changed, with its time zone; None where that is not known.
    """

    path: str
    is_dir: bool = False
    size: int = 0
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """One line that matches; a dataclass, so that `dataclasses.asdict` makes what tools show of it.

    Args:
        path: the file.
        line: the number of the line, counted from 1.
        text: the line without its end.
    """

    path: str
    line: int
    text: str


@runtime_checkable
class BackendProtocol(Protocol):
    """Where the files of an agent are.

    Every method raises `BackendError`; directories exist where files are below them, unless a backend has real ones.
    """

    def write(self, path: str, contents: str) -> MaybeAwaitable[object]:
        """Create or overwrite a file, its parent directories included."""

    def read(self, path: str, *, offset: int = 0, limit: int = 100) -> MaybeAwaitable[str]:
        """Lines of a text file, each as ``cat -n`` writes it: the number from 1, six wide, a tab, the line.

        Args:
            path: the file.
            offset: how many lines to leave out.
            limit: how many to show at most; 0 or less means all. See `MAX_PAGE_CHARS`.
        """

    def edit(self, path: str, old: str, new: str) -> MaybeAwaitable[object]:
        """Replace the only occurrence of a text.

        Raises:
            ValueError: the text does not occur, or more than once; the message is for the model.
        """

    def ls(self, path: str = "/", *, recursive: bool = False) -> MaybeAwaitable[Sequence[FileInfo]]:
        """The entries of a directory, or everything below it, by path."""

    def glob(self, pattern: str, *, path: str = "/", timeout_s: float = 20.0) -> MaybeAwaitable[Sequence[FileInfo]]:
        """The files below a directory that match a POSIX pattern, seen from there, by path.

        ``*`` does not match ``/``, ``**`` does; braces are alternatives.
        """

    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> MaybeAwaitable[Sequence[GrepMatch]]:
        """The lines that a regular expression finds, in a file or below a directory, at most `MAX_MATCHES`.

        Args:
            pattern: in the syntax of RE2.
            path: a file, or a directory.
            recursive: whether to look below subdirectories as well.
        """


@frozen
class FileContent:
    """A file as it was loaded.

    Args:
        data: its bytes.
        version: what `FileStore.save` compares; it changes with each save.
    """

    data: bytes
    version: str


@runtime_checkable
class FileStore(Protocol):
    """A place for whole files. Every method raises `BackendError`."""

    def load(self, path: str) -> MaybeAwaitable[FileContent]:
        """The file: ``file_not_found``, or ``is_directory`` where files are below that path."""

    def save(self, path: str, data: bytes, *, version: str | None = None) -> MaybeAwaitable[None]:
        """Create or replace a file, all of it or nothing.

        Args:
            path: the file. A file cannot be where files are below it (``is_directory``), nor below another file
                (``invalid_path``).
            data: its bytes.
            version: replace this version only, with ``""`` create only; else ``conflict``. None = whatever is there.
        """

    def remove(self, path: str, *, version: str | None = None) -> MaybeAwaitable[None]:
        """Remove a file; see `save` for the version."""

    def list(self, folder: str) -> MaybeAwaitable[Sequence[FileInfo]]:
        """Every file below a folder at any depth, without directories, by path; the file itself, where it is one."""


@runtime_checkable
class IndexedFileStore(FileStore, Protocol):
    """A file store that knows, without loading them, which files can hold a text."""

    def candidates(self, folder: str, texts: Sequence[str]) -> MaybeAwaitable[Sequence[str]]:
        """The paths of all files below a folder that hold all of some texts, and perhaps of others; the file itself."""


def virtual_path(path: str) -> str:
    """A path as backends get it: absolute, POSIX, NFC, without ``.``, ``..``, ``//`` and a slash at its end.

    A relative path counts from the root, and so does ``""``.

    Args:
        path: as a model wrote it.

    Raises:
        BackendError: ``invalid_path``: it leads above the root, has a control character, a lone surrogate or a line
            separator, or is longer than 4,096 bytes, or a part of it than 255.
    """
    if not isinstance(path, str) or len(path) > _PATH_BYTES:
        raise BackendError("invalid_path")
    path = unicodedata.normalize("NFC", path)
    if any(unicodedata.category(character) in _REFUSED for character in path):
        raise BackendError("invalid_path")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif not parts:
            raise BackendError("invalid_path")
        else:
            parts.pop()
    folded = "/" + "/".join(parts)
    if len(folded.encode()) > _PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise BackendError("invalid_path")
    return folded
