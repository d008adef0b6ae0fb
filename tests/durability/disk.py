"""A disk whose power can be cut: what was written, in order, and which files it may hold when it comes back.

What was synced is there. Of what was not, each sector of 512 bytes may have reached the disk or not, whatever the
others did; and so may each change of a folder's names. That is all that SQLite relies on, and more than disks do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Literal, TypeAlias

from attrs import define, field, frozen

__all__ = ["FATES", "Create", "Disk", "Fate", "Op", "Resize", "Sync", "SyncNames", "Unlink", "Write"]

#: Bytes that reach a disk together or not at all.
SECTOR = 512


@frozen
class Write:
    """Bytes of a file, which is named by a number: its name may go, or become another file's."""

    file: int
    at: int
    data: bytes = field(repr=False)


@frozen
class Resize:
    """A file gets another size."""

    file: int
    size: int


@frozen
class Sync:
    """All of a file is on the disk, but maybe not its name."""

    file: int


@frozen
class Create:
    """A name for a new file."""

    name: str
    file: int


@frozen
class Unlink:
    """A name goes."""

    name: str


@frozen
class SyncNames:
    """All names are on the disk."""


Op: TypeAlias = Write | Resize | Sync | Create | Unlink | SyncNames

#: What becomes of the unsynced: ``"lost"``; ``"kept"``; ``"first"``: the older ones are kept, and a part of the next;
#: ``"some"``: any writes; ``"torn"``: any sectors; ``"holes"``: the new size, and any sectors.
Fate = Literal["lost", "kept", "first", "some", "torn", "holes"]

FATES: Sequence[Fate] = ("lost", "kept", "first", "some", "torn", "holes")


@define
class _File:
    durable: bytes = b""
    unsynced: list[Write | Resize] = field(factory=list)

    def now(self) -> bytes:
        content = bytearray(self.durable)
        for op in self.unsynced:
            _apply(content, op)
        return bytes(content)

    def after(self, fate: Fate, random: Random) -> bytes:
        content = bytearray(self.durable)
        for op in _survivors(self.unsynced, fate, random):
            _apply(content, op)
        if fate == "holes":
            content.extend(bytes(max(0, len(self.now()) - len(content))))
        return bytes(content)


def _apply(content: bytearray, op: Write | Resize) -> None:
    size = op.size if isinstance(op, Resize) else max(len(content), op.at + len(op.data))
    content.extend(bytes(max(0, size - len(content))))
    del content[size:]
    if isinstance(op, Write):
        content[op.at : op.at + len(op.data)] = op.data


def _sectors(op: Write | Resize) -> list[Write | Resize]:
    if isinstance(op, Resize):
        return [op]
    edges = [op.at, *range(op.at // SECTOR * SECTOR + SECTOR, op.at + len(op.data), SECTOR), op.at + len(op.data)]
    return [Write(op.file, a, op.data[a - op.at : b - op.at]) for a, b in pairwise(edges)]


def _survivors(ops: Sequence[Write | Resize], fate: Fate, random: Random) -> list[Write | Resize]:
    match fate:
        case "lost":
            return []
        case "kept":
            return list(ops)
        case "first":
            upto = random.randint(0, len(ops))
            torn = [part for op in ops[upto : upto + 1] for part in _sectors(op)]
            return [*ops[:upto], *torn[: random.randint(0, len(torn))]]
        case "some":
            return [op for op in ops if random.random() < 0.5]
        case "torn" | "holes":
            odds = random.choice((0.1, 0.5, 0.9))
            return [part for op in ops for part in _sectors(op) if random.random() < odds]


@define
class Disk:
    """One folder on a disk.

    Args:
        files: by number.
        names: those on the disk.
        renamed: name -> what it has become since then, oldest first; None = it is gone.
    """

    files: dict[int, _File] = field(factory=dict)
    names: dict[str, int] = field(factory=dict)
    renamed: dict[str, list[int | None]] = field(factory=dict)

    def do(self, op: Op) -> None:
        """Let something happen."""
        match op:
            case Write() | Resize():
                self.files[op.file].unsynced.append(op)
            case Sync():
                self.files[op.file] = _File(self.files[op.file].now())
            case Create():
                self.files[op.file] = _File()
                self.renamed.setdefault(op.name, []).append(op.file)
            case Unlink():
                self.renamed.setdefault(op.name, []).append(None)
            case SyncNames():
                self.names = self._named({name: len(since) for name, since in self.renamed.items()})
                self.renamed = {}

    def _named(self, kept: dict[str, int]) -> dict[str, int]:
        found: dict[str, int | None] = dict(self.names)
        for name, count in kept.items():
            if count:
                found[name] = self.renamed[name][count - 1]
        return {name: file for name, file in found.items() if file is not None}

    def cut(self, fate: Fate, random: Random) -> dict[str, bytes]:
        """What lies there after a power cut: content by name."""
        kept = {name: _how_many(len(since), fate, random) for name, since in self.renamed.items()}
        return {name: self.files[file].after(fate, random) for name, file in self._named(kept).items()}

    def unsynced(self) -> bool:
        """Whether a power cut could take anything away."""
        return bool(self.renamed) or any(self.files[file].unsynced for file in self.names.values())


def _how_many(changes: int, fate: Fate, random: Random) -> int:
    match fate:
        case "lost":
            return 0
        case "kept":
            return changes
        case _:
            return random.randint(0, changes)
