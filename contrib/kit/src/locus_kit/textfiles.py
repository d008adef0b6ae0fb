"""Small text files that other people may have written, read for a prompt, without characters that cannot be seen."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from locus_kit.invisible import remove_invisible

__all__ = ["MAX_BYTES", "TextFileError", "read_below", "read_text"]

#: Bytes of one file.
MAX_BYTES = 64_000


class TextFileError(ValueError):
    """A file that is not read. Its text says why, without the path."""


def read_text(path: str | os.PathLike[str], *, follow: bool = True, dir_fd: int | None = None) -> str | None:
    """What a file says, or None where it does not exist.

    Args:
        path: the file.
        follow: whether the file itself may be a link.
        dir_fd: the descriptor of the folder that a relative path begins at; None = the working directory.

    Returns:
        The text without characters that a reader cannot see and without blanks at its ends.

    Raises:
        TextFileError: it has more than 64,000 bytes, is not UTF-8 text, not a regular file, or cannot be read.
    """
    try:
        # Without waiting: a file may be a pipe that is never written to.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        descriptor = os.open(path, flags, dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise TextFileError(f"it cannot be read: {e.strerror}") from e
    except ValueError as e:
        raise TextFileError(f"its path cannot be used: {e}") from e
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TextFileError("it is not a regular file")
    with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise TextFileError(f"it has more than {MAX_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise TextFileError(f"it is not UTF-8 text: {e.reason} at byte {e.start}") from e
    return remove_invisible(text.replace("\r\n", "\n")).strip()


def read_below(folder: str | os.PathLike[str], parts: Sequence[str]) -> str | None:
    """What a file in a folder says, or None where it does not exist; no link on the way is followed.

    Each folder is opened from the one above it, so that exchanging one for a link in between leads nowhere.

    Args:
        folder: may be a link itself.
        parts: the folders below it and the file, each a name.

    Raises:
        TextFileError: see `read_text`; or a part is not a name, or a link.
    """
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise TextFileError("its path must be names of folders and a file, without '..'")
    opened: list[int] = []
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.append(here)
        for part in parts[:-1]:
            here = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            opened.append(here)
        return read_text(parts[-1], follow=False, dir_fd=here)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise TextFileError(f"it cannot be read: {e.strerror}") from e
    finally:
        for descriptor in opened:
            os.close(descriptor)
