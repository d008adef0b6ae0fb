"""Room on a full disk, so that what was written can be deleted there.

A deletion has to write before anything is free: to SQLite's log, and then to the file, which grows by what lies in the
log only. So an open store holds a reserve, a file without a name that is gone with its process, and lets it go for
a deletion. Where another program has taken all the room, a deletion goes without a log, see
`Session.do_without_log`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from locus.plugin import Lazy

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Lazy("ctypes")

__all__ = ["Reserve", "lacks_room", "punch_free_pages"]

#: Bytes: what a checkpoint adds to the file at most, 256 pages of the log, and what a deletion writes.
_RESERVE = 320 * 4096

#: ``FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`` of Linux.
_PUNCH = 0x03


#: Bytes: SQLite's shared memory, and the first pages of a log.
_LEAST = 16 * 4096


def lacks_room(path: Path) -> bool:
    """Whether the disk of a file is full; False on a system that cannot tell."""
    try:
        disk = os.statvfs(path.parent)
    except (AttributeError, OSError):  # pragma: no cover - Windows, or a folder that is gone
        return False
    return disk.f_bavail * disk.f_frsize < _LEAST


class Reserve:
    """Room on the disk of a file, held for as long as this object or its process lives."""

    __slots__ = ("_file", "_folder")

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """Whether there is one."""
        return self._file is not None

    def hold(self) -> None:
        """Take `_RESERVE`, but never more than half of what is free; on a system that cannot tell, nothing."""
        if self._file is not None or sys.platform == "win32" or sys.platform == "darwin":
            return
        try:
            disk = os.statvfs(self._folder)
            size = min(_RESERVE, disk.f_bavail * disk.f_frsize // 2)
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - held
        except OSError:
            return
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError:
            file.close()
        else:
            self._file = file

    def release(self) -> bool:
        """Let it go; whether there was one."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
        return file is not None


def punch_free_pages(file: IO[bytes]) -> None:
    """Give the room of a database's free pages back to the disk; the file keeps its length.

    What a free page holds is never read. Only its owner may do this: no other connection may use the file, and
    everything must be in it (https://sqlite.org/fileformat2.html#the_freelist).
    Systems other than Linux keep that room; the pages are used again there, too.

    Args:
        file: the database, open for reading and writing, without a buffer.
    """
    if sys.platform != "linux":
        return
    fallocate = ctypes.CDLL(None).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    header = os.pread(file.fileno(), 100, 0)
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    trunk = int.from_bytes(header[32:36], "big")
    while trunk:
        content = os.pread(file.fileno(), page, (trunk - 1) * page)
        numbers = [int.from_bytes(content[at : at + 4], "big") for at in range(0, len(content), 4)]
        trunk, count = numbers[0], numbers[1]
        for leaf in numbers[2 : 2 + count]:
            fallocate(file.fileno(), _PUNCH, (leaf - 1) * page, page)
