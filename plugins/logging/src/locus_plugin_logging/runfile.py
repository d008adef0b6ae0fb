"""A file that lines are appended to and that is set aside before it grows too large.

Not `logging.handlers.RotatingFileHandler`: that one makes files that everybody may read, writes a line in pieces, so
that those of two processes mix, and keeps to itself that a disk is full. A run log holds prompts and results, and is
read back.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

__all__ = ["RunFile", "rotated_path"]

# Two agents of one program may write to one file.
_WRITING = Lock()


def rotated_path(path: Path, number: int) -> Path:
    """What a file is called after it was set aside that many times."""
    return path.with_name(f"{path.name}.{number}")


class RunFile:
    """Appends whole lines. Used by one thread.

    Args:
        path: the file; missing folders are made, and everything that is made can be read by its owner only.
        max_bytes: it is set aside before it would grow beyond this. A longer line has a file of its own.
        backups: how many files set aside are kept.
    """

    __slots__ = ("_backups", "_fd", "_max_bytes", "path")

    def __init__(self, path: str | os.PathLike[str], max_bytes: int, backups: int) -> None:
        self.path = Path(path).expanduser()
        self._max_bytes, self._backups = max_bytes, backups
        self._fd = -1

    def __del__(self) -> None:
        self.close()

    def write(self, line: bytes) -> None:
        """Append a line, its end included.

        Raises:
            OSError: it cannot be written, or not as a whole.
        """
        with _WRITING:
            fd = self._current()
            size = os.fstat(fd).st_size
            if size and size + len(line) > self._max_bytes:
                self._rotate()
                fd = self._current()
            while line:
                line = line[os.write(fd, line) :]

    def sync(self) -> None:
        """Wait until the disk has it."""
        if self._fd >= 0:
            os.fsync(self._fd)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _current(self) -> int:
        """The open file of that name, which another process may have set aside since."""
        if self._fd >= 0 and not self._is_there():
            self.close()
        if self._fd < 0:
            self._open()
        return self._fd

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), self.path.stat())
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        size = os.fstat(self._fd).st_size
        if size:
            os.lseek(self._fd, size - 1, os.SEEK_SET)
            if os.read(self._fd, 1) != b"\n":
                os.write(self._fd, b"\n")  # a process died in the middle of a line: the next one is not to be lost too

    def _rotate(self) -> None:
        self.close()
        if not self._backups:
            self.path.unlink(missing_ok=True)
            return
        for number in range(self._backups, 0, -1):
            older = rotated_path(self.path, number - 1) if number > 1 else self.path
            if older.exists():
                older.replace(rotated_path(self.path, number))
