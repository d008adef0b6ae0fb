"""Behind a pooler in transaction mode."""

from __future__ import annotations

import anyio
import pytest

from locus.core.journal import Submitted
from locus.core.messages import Message, Role
from locus.journal import Appended
from locus_plugin_postgres import PostgresFailed, PostgresStore
from locus_testkit.contracts._samples import bodies_of, texts

from .pooler import Pooler
from .server import Server

pytestmark = pytest.mark.anyio


def url_of(server: Server, pooler: Pooler) -> str:
    return server.url().replace(f":{server.port}/", f":{pooler.port}/")


async def test_everything_works_behind_a_pooler(server: Server, schema: str) -> None:
    with Pooler(server.port) as pooler:
        url = url_of(server, pooler)
        async with (
            PostgresStore(url, schema=schema, pooler=True) as here,
            PostgresStore(url, schema=schema, pooler=True) as there,
        ):
            for thread in ("a", "b", "c"):
                claim = await here.claim(thread, "w")
                assert await there.renew(claim)
                for n in range(5):
                    assert await here.append(claim, texts(1, f"{n}")) is Appended.OK
                await here.release(claim)
                assert len(bodies_of(await there.read(thread))) == 5
            await there.fork("a", 2, "fork", texts(1))
            assert await there.delete("b")
            assert {info.thread_id for info in await here.threads()} == {"a", "c", "fork"}
            found: list[str] = []

            async def take() -> None:
                offer = await there.take(["q"], "w", 30)
                assert offer is not None
                found.append(offer.thread_id)
                assert await offer.done()

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(take)
                    turn = Submitted(run_id="run", prompt=Message(Role.USER, "Do it."), queue="q")
                    assert await here.submit("t", [turn], queue="q")
            assert found == ["t"]


async def test_a_store_that_does_not_know_of_the_pooler_fails_there(server: Server, schema: str) -> None:
    """So that the test above shows something."""
    with Pooler(server.port) as pooler:
        url = url_of(server, pooler)
        async with PostgresStore(url, schema=schema) as here, PostgresStore(url, schema=schema) as there:
            with pytest.raises(PostgresFailed, match="prepared statement"):
                await claim_often(here, there)


async def claim_often(*stores: PostgresStore) -> None:
    for n in range(20):
        for store in stores:
            await store.release(await store.claim(f"t{n}", "w"))
