"""A thread is read a page at a time, and the pages are what is read at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from locus.core.journal import Body
from locus.journal import Appended
from locus_plugin_sqlite import SqliteStore

from .process import step

pytestmark = pytest.mark.anyio


async def written(store: SqliteStore, thread_id: str, *batches: int) -> None:
    claim = await store.claim(thread_id, "w")
    n = 0
    for size in batches:
        bodies: list[Body] = [step(n + i) for i in range(size)]
        assert await store.append(claim, bodies) is Appended.OK
        n += size
    await store.release(claim)


async def paged(store: SqliteStore, thread_id: str, count: int) -> list[Any]:
    found: list[Any] = []
    while page := await store.read_page(thread_id, len(found), count):
        assert len(page) <= count
        found += page
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
async def test_pages_are_the_thread(tmp_path: Path, count: int) -> None:
    async with SqliteStore(tmp_path / "runs.db") as store:
        await written(store, "t", 1, 4, 1, 1, 3, 2)
        for at in (1, 3, 5, 12):
            name = f"fork at {at}"
            await store.fork("t", at, name, [step(99)])
            assert await paged(store, name, count) == list(await store.read(name))
        await store.fork("fork at 5", 3, "fork of a fork")
        assert await paged(store, "fork of a fork", count) == list(await store.read("fork of a fork"))
        assert await paged(store, "t", count) == list(await store.read("t"))
        assert await store.read_page("t", 4, count) == (await store.read("t", 4))[:count]
        assert await store.read_page("t", 12, count) == ()
        assert await store.read_page("nowhere", 0, count) == ()
