"""A disk that is full and a power cut under a server, on file systems mounted for it: `tox -e privileged`, as root."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.durability.mounted import copied, formatted, image, memory, resized

from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended, Claim
from locus_plugin_postgres import PostgresFull, PostgresProblem, PostgresStore, PostgresUnreachable

from .server import Server

pytestmark = [pytest.mark.privileged, pytest.mark.anyio]

MB = 2**20


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: this is about the server."""
    return "asyncio"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the user of the server reaches."""
    with tempfile.TemporaryDirectory(prefix="locus-mounted-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def step(n: int, text: str = "") -> Body:
    return Outcome(run_id="run", step_id=StepId(0, "step", n), value=f"value {n} {text}")


async def append_until_full(store: PostgresStore, claim: Claim) -> tuple[int, PostgresProblem | None]:
    """How many entries were stored, and what was said then: None where nobody knows what became of the next one."""
    for n in range(1, 10_000):
        noise = random.Random(n).randbytes(50_000).hex()
        try:
            came = await store.append(claim, [step(n, noise)])
        except PostgresProblem as e:
            return n - 1, e
        if came is Appended.UNKNOWN:
            return n - 1, None
        assert came is Appended.OK
    raise AssertionError("the disk is not full")


async def numbers(store: PostgresStore) -> list[int]:
    return [e.body.step_id.ordinal for e in await store.read("t") if isinstance(e.body, Outcome)]


async def test_full_disk_of_tables_is_an_error_and_the_claim_goes_on_when_there_is_room(
    server: Server, schema: str, folder: Path
) -> None:
    with memory(folder / "small", 4 * MB):
        server.own(folder / "small")
        async with PostgresStore(server.url(), schema=schema, patience=30) as store:
            claim = await store.claim("t", "w")
            server.sql(f"CREATE TABLESPACE small LOCATION '{folder / 'small'}'")
            server.sql(f"ALTER TABLE {schema}.entries SET TABLESPACE small")

            stored, error = await append_until_full(store, claim)
            assert isinstance(error, PostgresFull)
            assert "what was committed is kept" in str(error)
            assert await numbers(store) == list(range(1, stored + 1))

            resized(folder / "small", 16 * MB)
            assert await store.append(claim, [step(stored + 1)]) is Appended.OK
            assert await numbers(store) == list(range(1, stored + 2))
        server.sql(f"DROP SCHEMA {schema} CASCADE")
        server.sql("DROP TABLESPACE small")


async def test_full_disk_of_the_log_stops_the_server_and_takes_nothing_that_was_stored(folder: Path) -> None:
    with memory(folder / "disk", 128 * MB):
        server = Server(folder=folder / "disk", fsync="on", max_wal_size="1GB")
        try:
            server.start()
            async with PostgresStore(server.url(), patience=1) as store:
                claim = await store.claim("t", "w")
                stored, error = await append_until_full(store, claim)
            assert error is None or isinstance(error, PostgresUnreachable)

            server.stop()
            resized(folder / "disk", 256 * MB)
            server.start()
            async with PostgresStore(server.url(), patience=30) as store:
                found = await numbers(store)
                # One append may have been stored whose answer was lost.
                assert found == list(range(1, max(stored, len(found)) + 1))
                assert len(found) <= stored + 1
        finally:
            server.stop()


@pytest.mark.parametrize("sync", ["full", "normal"])
async def test_power_cut_takes_nothing_that_was_reported(folder: Path, sync: str) -> None:
    """With ``sync="normal"`` the newest may be gone, and what is there has no gap."""
    formatted(folder / "disk", 256 * MB)
    with image(folder / "disk", folder / "mounted"):
        server = Server(folder=folder / "mounted", fsync="on", wal_writer_delay="10s")
        try:
            server.start()
            async with PostgresStore(server.url(), sync=sync, lease=60) as store:  # type: ignore[arg-type]  # one of both
                claim = await store.claim("t", "w")
                os.sync()  # the cut is after the server was made
                for n in range(1, 201):
                    assert await store.append(claim, [step(n)]) is Appended.OK
                server.freeze()
                copied(folder / "disk", folder / "copy")
                server.thaw()
        finally:
            server.stop()
    with image(folder / "copy", folder / "again"):
        server = Server(folder=folder / "again", fsync="on")
        try:
            server.start()
            async with PostgresStore(server.url()) as store:
                with anyio.fail_after(60):
                    found = await numbers(store)
            assert found == list(range(1, len(found) + 1))
            assert sync == "normal" or len(found) == 200
        finally:
            server.stop()
