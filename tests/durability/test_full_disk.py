"""A disk without room, below the real store: what filled it can be deleted. Mounted disks: `test_privileged`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import apsw
import pytest
from attrs import define, field
from tests.durability.filling import fill_and_delete
from tests.durability.recorded import NamedVFS, connecting_through

from locus_plugin_sqlite import SqliteStore

MB = 2**20


@define
class _SmallDisk:
    """A folder that takes no more than so many bytes."""

    folder: Path
    size: int
    #: What has no name there: device and inode -> descriptor.
    _nameless: dict[tuple[int, int], int] = field(factory=dict)

    def take(self, growth: int) -> bool:
        """Whether there is room for so many bytes."""
        used = sum(each.stat().st_size for each in self.folder.iterdir())
        return growth <= 0 or used + self._held() + growth <= self.size

    def _held(self) -> int:
        held = 0
        for identity, fd in tuple(self._nameless.items()):
            try:
                found = os.fstat(fd)
            except OSError:
                del self._nameless[identity]
            else:
                held += found.st_size if (found.st_dev, found.st_ino) == identity else 0
        return held

    def allocate(self, fd: int, offset: int, size: int) -> None:
        """`os.posix_fallocate` for a file without a name."""
        if not self.take(size):
            raise OSError(28, "no space left on device")
        os.truncate(fd, offset + size)
        found = os.fstat(fd)
        self._nameless[found.st_dev, found.st_ino] = fd


class _File(apsw.VFSFile):
    def __init__(self, name: apsw.URIFilename | str | None, flags: list[int], disk: _SmallDisk) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        if not self._disk.take(offset + len(data) - self.xFileSize()):
            full = apsw.FullError("database or disk is full")
            vars(full)["extendedresult"] = apsw.SQLITE_FULL
            raise full
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        pass


class _Files(NamedVFS):
    def __init__(self, disk: _SmallDisk) -> None:
        super().__init__(f"small-{uuid4().hex}")
        self._disk = disk

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(name, flags, self._disk) if name is not None else apsw.VFSFile("", name, flags)


@pytest.mark.parametrize("is_new", [False, True], ids=["the same store", "a new store"])
def test_what_filled_a_disk_can_be_deleted_and_its_room_used_again(
    is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(stored: int, read: int) -> None:
        assert stored > 100
        # apsw raises what fails in a checkpoint after a commit, which SQLite itself tries again later.
        assert read in (stored, stored + 1)

    disk = _SmallDisk(tmp_path, 5 * MB)
    monkeypatch.setattr(os, "posix_fallocate", disk.allocate)
    with connecting_through(_Files(disk)):
        anyio.run(partial(fill_and_delete, tmp_path / "runs.db", rounds=2, reopens=is_new, check=check))
    assert anyio.run(SqliteStore(tmp_path / "runs.db").verify).damage == ()
