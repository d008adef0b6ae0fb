"""A server that goes away under load, and comes back: every append is stored once, and no thread changes hands."""

from __future__ import annotations

import time
from datetime import timedelta

import anyio
import pytest

from locus.core.errors import ThreadBusy
from locus.core.journal import Body
from locus.journal import Appended
from locus_plugin_postgres import PostgresStore
from locus_testkit.contracts._samples import bodies_of, texts

from .server import Server

pytestmark = [pytest.mark.anyio, pytest.mark.proof, pytest.mark.chaos]


async def work(store: PostgresStore, thread: str, batches: int, until: anyio.Event) -> list[Body]:
    """Append until that many batches are there and the faults are over; gives what must be there."""
    told: list[Body] = []
    claim = await store.claim(thread, "w")
    while batches > 0 or not until.is_set():
        bodies = texts(2, f"run-{len(told)}")
        assert await store.append(claim, bodies) is Appended.OK
        told += bodies
        batches -= 1
    await store.release(claim)
    return told


async def insist_on_all(server: Server, schema: str, faults: object) -> None:
    """Four threads are written to while something happens to the server: nothing is missing or there twice."""
    told: dict[str, list[Body]] = {}
    over = anyio.Event()
    async with PostgresStore(server.url(), schema=schema, patience=60, lease=60) as store:

        async def one(thread: str) -> None:
            told[thread] = await work(store, thread, 10, over)

        async with anyio.create_task_group() as group:
            for n in range(4):
                group.start_soon(one, f"t{n}")
            await faults()  # type: ignore[operator]
            over.set()
        for thread, bodies in told.items():
            assert bodies_of(await store.read(thread)) == bodies
        assert {info.holder for info in await store.threads()} == {None}


async def test_a_server_that_is_killed_and_started_again(server: Server, schema: str) -> None:
    async def kill() -> None:
        for _ in range(4):
            await anyio.sleep(0.15)
            await anyio.to_thread.run_sync(server.stop)
            await anyio.to_thread.run_sync(server.start)

    await insist_on_all(server, schema, kill)


async def test_connections_that_are_terminated(server: Server, schema: str) -> None:
    async def terminate() -> None:
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
        for _ in range(25):
            await anyio.sleep(0.02)
            await anyio.to_thread.run_sync(server.sql, end, "locus")

    await insist_on_all(server, schema, terminate)


async def test_a_server_that_is_frozen(server: Server, schema: str) -> None:
    async def freeze() -> None:
        for _ in range(2):
            server.freeze()
            await anyio.sleep(0.3)
            server.thaw()
            await anyio.sleep(0.1)

    await insist_on_all(server, schema, freeze)


async def test_nobody_is_taken_for_dead_while_the_server_was_away(server: Server, schema: str) -> None:
    """A worker could renew nothing then: its lease counts from the start of the server."""
    here = PostgresStore(server.url(), schema=schema, lease=30)
    async with here, PostgresStore(server.url(), schema=schema, lease=30) as there:
        claim = await here.claim("t", "w")
        server.stop()
        server.start()
        hour = "since = since - interval '1 hour', lease = $1::interval"
        server.sql(f"UPDATE {schema}.threads SET {hour} RETURNING 1", timedelta(seconds=30))
        server.sql(f"UPDATE {schema}.workers SET renewed = renewed - interval '1 hour' WHERE $1 RETURNING 1", True)
        with pytest.raises(ThreadBusy):
            await there.claim("t", "another")
        assert await here.append(claim, texts(1)) is Appended.OK


async def test_a_lease_is_renewed_by_the_store_itself(server: Server, schema: str) -> None:
    """A worker that says nothing for several leases, because its tool takes long, keeps its thread."""
    async with PostgresStore(server.url(), schema=schema, lease=0.6) as here:
        claim = await here.claim("t", "busy")
        lost: list[bool] = []
        claim.watch.on_lost = lambda: lost.append(True)
        time.sleep(1.5)  # noqa: ASYNC251  # as a tool does that blocks the loop
        async with PostgresStore(server.url(), schema=schema, lease=0.6) as there:
            with pytest.raises(ThreadBusy):
                await there.claim("t", "another")
        assert lost == []


async def test_the_timer_renews_no_lease_of_a_program_that_says_it_hangs(server: Server, schema: str) -> None:
    hangs = PostgresStore(server.url(), schema=schema, lease=0.3)
    async with hangs, PostgresStore(server.url(), schema=schema, lease=0.3) as other:
        claim = await hangs.claim("t", "w")
        asked: list[str] = []

        def is_alive() -> bool:
            asked.append("by the timer")
            return False

        hangs.renew_while(is_alive)
        with anyio.fail_after(60):
            while True:
                try:
                    await other.claim("t", "next")
                    break
                except ThreadBusy:
                    await anyio.sleep(0.02)

        assert asked
        assert await hangs.append(claim, texts(1)) is Appended.FENCED
