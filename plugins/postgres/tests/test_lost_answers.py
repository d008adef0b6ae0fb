"""An answer that is lost: what was asked is done once, and the store finds out that it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from locus.core.journal import Cancelled, Submitted
from locus.core.messages import Message, Role
from locus.journal import Appended, Claim, Signal
from locus_plugin_postgres import PostgresStore, PostgresUnreachable
from locus_testkit.contracts._samples import bodies_of, texts

from .proxy import Fate, Proxy
from .server import Server

pytestmark = pytest.mark.anyio

#: The names of a run in `texts`, which stand in what is sent as they are.
MARK = "lost-run"


def judge(
    fates: Iterable[Fate], mark: str = MARK, then: Callable[[], object] = lambda: None
) -> Callable[[bytes], Fate]:
    """What holds the mark meets these fates, one after the other, and is passed on behind them."""
    left = list(fates)

    def decide(data: bytes) -> Fate:
        if mark.encode() not in data or not left:
            return "pass"
        fate = left.pop(0)
        then()
        return fate

    return decide


def store_behind(proxy: Proxy, server: Server, schema: str, patience: float = 10.0) -> PostgresStore:
    url = server.url().replace(f":{server.port}/", f":{proxy.port}/")
    return PostgresStore(url, schema=schema, patience=patience, connections=1)


@pytest.mark.parametrize("fates", [["lose"], ["lose answer"], ["lose", "lose answer"], ["lose answer", "lose"]])
async def test_an_append_is_stored_once_and_said_to_be(server: Server, schema: str, fates: list[Fate]) -> None:
    with Proxy(server.port, judge(fates)) as proxy:
        async with store_behind(proxy, server, schema) as store:
            claim = await store.claim("t", "w")
            assert await store.append(claim, texts(2, "before")) is Appended.OK
            assert await store.append(claim, texts(2, MARK)) is Appended.OK
            assert await store.append(claim, texts(1, "behind")) is Appended.OK
            told = [*texts(2, "before"), *texts(2, MARK), *texts(1, "behind")]
            assert bodies_of(await store.read("t")) == told


async def test_an_append_that_cannot_be_found_out_is_unknown_and_the_next_claim_shows_it(
    server: Server, schema: str
) -> None:
    fates: list[Fate] = ["lose answer", *["lose"] * 1000]  # type: ignore[list-item]
    with Proxy(server.port, judge(fates)) as proxy:
        async with store_behind(proxy, server, schema, patience=1.0) as store:
            claim = await store.claim("t", "w")
            assert await store.append(claim, texts(2, MARK)) is Appended.UNKNOWN
            await store.release(claim)
    async with PostgresStore(server.url(), schema=schema) as store:
        assert bodies_of((await store.claim("t", "next")).entries) == list(texts(2, MARK))


@pytest.mark.parametrize(("fate", "said", "count"), [("lose", Appended.FENCED, 1), ("lose answer", Appended.OK, 3)])
async def test_a_worker_that_was_succeeded_meanwhile_hears_what_became_of_its_append(
    server: Server, schema: str, fate: Fate, said: Appended, count: int
) -> None:
    """What was stored before the other one claimed is stored; what was not is refused."""

    def succeed() -> None:
        if fate == "lose":
            server.sql(f"UPDATE {schema}.threads SET token = 'another'")

    with Proxy(server.port, judge([fate], then=succeed)) as proxy:
        async with store_behind(proxy, server, schema) as store:
            claim = await store.claim("t", "w")
            assert await store.append(claim, texts(1)) is Appended.OK
            assert await store.append(claim, texts(2, MARK)) is said
            assert len(await store.read("t")) == count


@pytest.mark.parametrize("fate", ["lose", "lose answer"])
async def test_all_that_is_not_an_append_is_done_once_too(server: Server, schema: str, fate: Fate) -> None:
    async with PostgresStore(server.url(), schema=schema) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, texts(3))
        await store.release(claim)
    turn = Submitted(run_id=MARK, prompt=Message(Role.USER, "Do it."), queue=MARK)
    for mark in (MARK, "COMMIT"):
        with Proxy(server.port, judge([fate] * 6, mark)) as proxy:
            async with store_behind(proxy, server, schema) as store:
                claim = await store.claim(MARK, MARK)
                assert await store.renew(claim)
                await store.release(claim)
                assert (await store.claim(MARK, MARK)).head == 0
                await store.fork("t", 2, f"fork {mark}", texts(1, MARK))
                assert len(await store.read(f"fork {mark}")) == 3
                assert await store.submit(f"turn {mark}", [turn], queue=MARK) is True
                assert await store.submit(f"turn {mark}", [turn], queue=MARK) is False
                signal = Signal(body=Cancelled(run_id=MARK, reason="enough"), id=MARK)
                assert await store.signal(f"turn {mark}", signal) is True
                assert await store.signal(f"turn {mark}", signal) is False
                offer = await store.take([MARK], MARK)
                assert offer is not None
                assert (offer.thread_id, offer.delivered) == (f"turn {mark}", 1)
                assert await offer.extend() is True
                assert await offer.done() is True
                assert await store.delete(f"turn {mark}") is True
                assert await store.delete(f"turn {mark}") is False


async def test_a_claim_whose_answer_never_came_is_given_back(server: Server, schema: str) -> None:
    with Proxy(server.port, judge(["lose answer", *["lose"] * 1000], "held-by-nobody")) as proxy:  # type: ignore[list-item]
        async with store_behind(proxy, server, schema, patience=1.0) as store:
            with pytest.raises(PostgresUnreachable) as caught:
                await store.claim("held-by-nobody", "w")
            assert caught.value.is_unknown
            proxy.judge = lambda data: "pass"
            assert isinstance(await store.claim("another", "w"), Claim)  # which settles what is owed
            async with PostgresStore(server.url(), schema=schema) as other:
                assert (await other.claim("held-by-nobody", "w")).head == 0
