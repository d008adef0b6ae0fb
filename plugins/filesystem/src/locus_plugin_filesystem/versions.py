"""`VersionedFiles`: whole files of a directory, by their content, so that an old one can be put back."""

from __future__ import annotations

import os
from collections.abc import Collection
from hashlib import sha256

from locus.files import BackendError, virtual_path
from locus_plugin_filesystem.descriptors import reading
from locus_plugin_filesystem.directory import FilesystemBackend, read_content
from locus_plugin_filesystem.text import MAX_FILE_BYTES

__all__ = ["VersionedFiles", "digest_of"]


def digest_of(data: bytes | None) -> str:
    """The SHA-256 of a file's content in hex; ``""`` for a file that does not exist."""
    return "" if data is None else sha256(data).hexdigest()


class VersionedFiles(FilesystemBackend):
    r"""The files of a directory, with their bytes; its arguments are those of `FilesystemBackend`.

    Example::

        files = VersionedFiles("work", links=False)
        before = files.load("/notes.md")
        files.write("/notes.md", "gallium\n")
        files.put_back("/notes.md", before, {digest_of(b"gallium\n")})
    """

    def load(self, path: str) -> bytes | None:
        """The content of a file; None where it does not exist.

        Raises:
            BackendError: ``is_directory``, ``permission_denied``, ``invalid_path``; ``too_large``: more than 10 MB.
        """
        path = virtual_path(path)
        try:
            with self._root.file(path) as (fd, _), reading(path):
                data = read_content(fd)
        except BackendError as e:
            if e.code == "file_not_found":
                return None
            raise
        if data is None or len(data) > MAX_FILE_BYTES:
            raise BackendError("too_large", f"{path} has more than {MAX_FILE_BYTES:,} bytes")
        return data

    def put_back(self, path: str, data: bytes | None, expected: Collection[str]) -> bool:
        """Give a file its old content back, or remove it, unless it was changed meanwhile.

        Args:
            path: the file.
            data: the old content; None = the file did not exist.
            expected: the digests of what may be replaced, see `digest_of`.

        Returns:
            False where the file is already as it was.

        Raises:
            BackendError: ``conflict``: its content is another one; and as for `load` and `write`.
        """
        path = virtual_path(path)
        if data is None and self.load(path) is None:
            return False  # directories above it are not made either
        with self._place(path) as (directory, name):
            now = self.load(path)
            if now == data:
                return False
            if digest_of(now) not in expected:
                raise BackendError("conflict", f"{path} was changed since")
            if data is not None:
                self._replace(directory, name, data, path)
            else:
                with reading(path):
                    os.unlink(name, dir_fd=directory)
                    os.fsync(directory)
        return True
