"""Large payloads of a thread, in chunks: a message may have a megabyte, and a payload is as long as it is.

A payload is named by its content, so that storing it again changes nothing. It is stored before the message that
names it. Deleting a thread deletes all of its payloads with one request.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from locus.core.errors import JournalDamaged
from locus_plugin_nats.reading import read_stream
from locus_plugin_nats.wire import ApiError, ConnectionLost

if TYPE_CHECKING:
    from locus_plugin_nats.session import Session

__all__ = ["forget_payload", "load_payload", "load_texts", "store_payload", "store_texts"]

#: What a message needs beside its chunk.
_ROOM = 4096

#: Chunks that are under way at a time.
_AT_ONCE = 4


async def store_payload(session: Session, key: str, content: bytes, mark: str = "p") -> tuple[str, int]:
    """Store a payload; gives its name and how many chunks it has.

    Args:
        session: the store.
        key: of the thread.
        content: what to store.
        mark: how its name begins.

    Raises:
        NatsProblem: it could not be stored.
    """
    name = mark + hashlib.sha256(content).hexdigest()
    return name, await _store(session, key, name, content)


async def store_texts(session: Session, key: str, texts: Mapping[str, bytes]) -> dict[str, int]:
    """Store the large texts of an append: hash -> content; gives how many chunks each has."""
    return {sha: await _store(session, key, sha, zlib.compress(text, 1)) for sha, text in texts.items()}


async def _store(session: Session, key: str, name: str, content: bytes) -> int:
    size = session.wire.max_payload - _ROOM
    chunks = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(i: int, chunk: bytes) -> None:
        async with room:
            await _publish(session, session.names.chunk(key, name, i), chunk)

    async with asyncio.TaskGroup() as group:
        for i, chunk in enumerate(chunks):
            group.create_task(one(i, chunk))
    return len(chunks)


async def _publish(session: Session, subject: str, chunk: bytes) -> None:
    # Storing it twice does no harm, so an answer that was lost is asked for again.
    deadline = time.monotonic() + session.settings.patience
    while True:
        await session.wire.up(deadline)
        try:
            await session.wire.publish(subject, chunk)
        except ConnectionLost:
            if time.monotonic() >= deadline:
                raise session.wire.unreachable() from None
        except ApiError as e:
            if not e.is_passing or time.monotonic() >= deadline:
                raise session.problem(e) from None
            await asyncio.sleep(0.1)
        else:
            return


async def load_payload(session: Session, key: str, name: str, chunks: int, thread_id: str) -> bytes:
    """A payload.

    Raises:
        JournalDamaged: a chunk is missing, or it is not what was stored.
    """
    content = await _load(session, key, name, chunks, thread_id)
    if not name.endswith(hashlib.sha256(content).hexdigest()):
        raise _damage_error(thread_id, name)
    return content


async def load_texts(session: Session, key: str, texts: Mapping[str, int], thread_id: str) -> dict[str, bytes]:
    """The large texts of an append, compressed. `locus_kit.packing.unpack` compares their hashes."""
    return {sha: await _load(session, key, sha, chunks, thread_id) for sha, chunks in texts.items()}


async def _load(session: Session, key: str, name: str, chunks: int, thread_id: str) -> bytes:
    names = session.names
    found = await read_stream(session, names.blobs, names.blob(key, name), 1, chunks)
    parts = {int(subject.rsplit(".", 1)[1]): data for subject, _, _, _, data in found}
    if set(parts) != set(range(chunks)):
        raise _damage_error(thread_id, name)
    return b"".join(parts[i] for i in range(chunks))


def _damage_error(thread_id: str, name: str) -> JournalDamaged:
    return JournalDamaged(
        f"thread {thread_id!r}: the payload {name} is missing, or is not what was stored",
        thread_id=thread_id,
        store="nats",
    )


async def forget_payload(session: Session, key: str, name: str) -> None:
    """Delete a payload that nothing names any more."""
    await session.wire.api(f"STREAM.PURGE.{session.names.blobs}", filter=session.names.blob(key, name))
