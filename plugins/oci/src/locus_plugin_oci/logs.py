"""The entries of threads as objects: written once, read several at a time, shared by forks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from attrs import evolve

from locus_plugin_oci.errors import BucketDamaged
from locus_plugin_oci.format import Batch, Head, Part, pack, pack_parts, unpack, unpack_parts
from locus_plugin_oci.objects import Objects

__all__ = ["Logs", "PartMissing"]

#: Bytes of JSON that a head holds itself; an append sends at most so much again.
TAIL = 64 * 1024

#: Parts that a head names itself.
PARTS = 128

#: Objects that are read at a time.
_AT_A_TIME = 16


class PartMissing(BucketDamaged):
    """An object with entries is missing: the thread or the object was deleted meanwhile."""


class Logs:
    """Entries in objects.

    Args:
        objects: of the bucket.
        tail: see `TAIL`.
        parts: see `PARTS`.
    """

    def __init__(self, objects: Objects, *, tail: int = TAIL, parts: int = PARTS) -> None:
        self._objects, self._tail, self._parts = objects, tail, parts
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    async def with_batches(self, head: Head, batches: Sequence[Batch]) -> Head:
        """The head with some more entries; what does not fit into it has been written.

        Raises:
            BucketProblem: nothing that counts was written.
        """
        tail = (*head.tail, *batches)
        count = head.count + sum(each.count for each in batches)
        if sum(each.size for each in tail) <= self._tail:
            return evolve(head, tail=tail, count=count)
        part = Part(f"{head.log}{uuid4().hex}", tail[0].first, tail[-1].last)
        await self._objects.put(part.name, pack(tail))
        parts = (*head.parts, part)
        if len(parts) > self._parts:
            whole = Part(f"{head.log}{uuid4().hex}", parts[0].first, parts[-1].last, nested=True)
            await self._objects.put(whole.name, pack_parts(parts))
            parts = (whole,)
        parent = f"{tail[-1].last}:{tail[-1].writer}"
        return evolve(head, parts=parts, tail=(), count=count, parent=parent)

    async def read(self, head: Head, after: int = 0) -> tuple[Batch, ...]:
        """The batches of a thread that hold its entries after a number; the first may hold earlier ones, too.

        Raises:
            PartMissing: an object is not there.
            BucketProblem: it cannot be read.
        """
        older = await self._of(head.parts, after)
        return tuple(each for each in (*older, *head.tail) if each.last > after)

    async def cut(self, head: Head, at: int) -> tuple[tuple[Part, ...], tuple[Batch, ...], str]:
        """The first entries of a thread, for a fork: parts, batches that lie in the head, and the `Head.parent`.

        Raises:
            PartMissing: an object is not there.
            BucketProblem: it cannot be read.
        """
        tail = [_upto(each, at) for each in head.tail if each.first <= at]
        parts = tuple(evolve(each, last=min(each.last, at)) for each in head.parts if each.first <= at)
        if not parts or head.parts[-1].last <= at:
            return parts, tuple(tail), head.parent if parts else ""
        # The last one holds more than counts, so it names the writer of the last entry that counts.
        batches = await self._of(parts[-1:], parts[-1].first - 1)
        return parts, (), f"{at}:{batches[-1].writer}"

    async def _of(self, parts: Sequence[Part], after: int) -> list[Batch]:
        wanted = [each for each in parts if each.last > after]
        found = await asyncio.gather(*(self._part(each, after) for each in wanted))
        return [batch for batches in found for batch in batches]

    async def _part(self, part: Part, after: int) -> list[Batch]:
        async with self._slots:
            found = await self._objects.get(part.name)
        bucket = self._objects.place.bucket
        if found is None:
            raise PartMissing(bucket, f"the object {part.name!r} with entries is missing")
        if part.nested:
            inner = unpack_parts(found.body, bucket, part.name)
            trimmed = [evolve(each, last=min(each.last, part.last)) for each in inner if each.first <= part.last]
            return await self._of(trimmed, after)
        batches = unpack(found.body, bucket, part.name)
        return [_upto(each, part.last) for each in batches if each.first <= part.last]


def _upto(batch: Batch, last: int) -> Batch:
    """A batch of which no more than the entries up to a number count: its text stays as it is."""
    return batch if batch.last <= last else evolve(batch, count=last - batch.first + 1)
