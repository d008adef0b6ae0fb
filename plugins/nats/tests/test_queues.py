"""What the laws of a queue do not say: how many messages, servers that are killed, and fences that are broken."""

from __future__ import annotations

import asyncio
import random

import anyio
import pytest

from locus.core.journal import Cancelled, Submitted
from locus.core.messages import Message, Role
from locus.journal import Offer, Signal
from locus_plugin_nats import DevServer, NatsSettings, NatsStore, places
from locus_plugin_nats.reading import Found, read_stream
from locus_plugin_nats.session import Session

pytestmark = pytest.mark.anyio


def turn() -> Submitted:
    return Submitted(run_id="run", prompt=Message(Role.USER, "Do it."), queue="q")


async def submit(store: NatsStore, thread_id: str) -> None:
    assert await store.submit(thread_id, [turn()], queue="q")


async def read_all(store: NatsStore, stream: str) -> list[Found]:
    """Every message of a stream."""

    async def work(session: Session) -> list[Found]:
        return await read_stream(session, stream, f"{session.settings.prefix}.>", 1)

    return await store._do(work)


async def test_submit_is_one_message(server: DevServer, prefix: str) -> None:
    """It is the entry, and the offer as well: nothing can come between them."""
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        await submit(store, "t")
        stored = [await read_all(store, name) for name in (prefix.upper(), f"{prefix.upper()}_Q")]
        assert [len(messages) for messages in stored] == [1, 0]
        assert stored[0][0][0].endswith(".t")


async def test_worker_that_waits_is_offered_what_comes_after_a_restart_of_the_server(
    own_server: DevServer, prefix: str
) -> None:
    """The store connects again while it waits, and what was submitted or held before is there."""
    settings = NatsSettings(prefix=prefix)
    found: list[Offer | None] = []
    async with NatsStore(own_server.url, settings) as here, NatsStore(own_server.url, settings) as there:
        await submit(here, "before")
        first = await there.take(["q"], "w")
        assert first is not None

        async def wait() -> None:
            found.append(await there.take(["q"], "w", 60))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.sleep(0.1)
                own_server.kill()
                own_server.start()
                await submit(here, "after")
        assert [None if each is None else each.thread_id for each in found] == ["after"]
        assert await first.done() is True
        assert (await here.depth("q")).held == 1


async def test_worker_is_cancelled_while_it_is_offered_a_thread(server: DevServer, prefix: str) -> None:
    """The offer goes to the next one, as if it had not been made."""
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        await submit(store, "t")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.take(["q"], "gone", 60)
        offer = await store.take(["q"], "w", 10)
        assert offer is not None
        assert offer.delivered == 1


def random_text(size: int) -> str:
    """Text that does not become shorter by compression."""
    return random.Random(size).randbytes(size // 2).hex()


def received(store: NatsStore) -> int:
    """Bytes that the server has sent to a store."""
    client = store._worker._session.wire._client  # type: ignore[union-attr]
    assert client is not None
    return int(client.stats["in_bytes"])


async def test_first_look_reads_no_bodies(server: DevServer, prefix: str) -> None:
    """What waits is known from headers, however long the prompts are."""
    prompt = Message(Role.USER, random_text(20_000))
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        for n in range(20):
            await store.submit(f"t{n}", [Submitted(run_id="run", prompt=prompt, queue="q")], queue="q")
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as looking:
        assert (await looking.depth("q")).ready == 20
        assert received(looking) < 100_000


async def test_store_keeps_only_what_waits(server: DevServer, prefix: str) -> None:
    """A worker that goes on for a year does not grow with every thread that it has done."""
    settings = NatsSettings(prefix=prefix)
    async with NatsStore(server.url, settings) as working, NatsStore(server.url, settings) as looking:
        for n in range(12):
            await submit(working, f"t{n}")
        await looking.depth("q")
        for _ in range(9):
            offer = await working.take(["q"], "w")
            assert offer is not None
            assert await offer.done()
        async with NatsStore(server.url, settings) as new:
            for store in (working, looking, new):
                depth = await store.depth("q")
                assert (depth.ready, depth.held) == (3, 0)
                assert await store._do(_count_known) == 3


async def _count_known(session: Session) -> int:
    return len(session.index.places) + len(session.index._over)


async def test_done_thread_that_a_store_still_takes_for_waiting_is_not_offered_again(
    server: DevServer, prefix: str
) -> None:
    """The place decides, which the server compares; then the store knows better."""
    settings = NatsSettings(prefix=prefix)
    async with NatsStore(server.url, settings) as here, NatsStore(server.url, settings) as there:
        for name in ("done", "next"):
            await submit(here, name)
        await there.depth("q")
        known = await there._do(_copy_known)
        offer = await here.take(["q"], "w")
        assert offer is not None
        assert await offer.done()
        await there.depth("q")

        async def forget(session: Session) -> None:
            for place in known:
                session.index._keep(place)

        await there._do(forget)
        found = await there.take(["q"], "w")
        assert found is not None
        assert found.thread_id == "next"
        assert await there.take(["q"], "w") is None


async def _copy_known(session: Session) -> list[places.Place]:
    return list(session.index.places.values())


async def test_signal_does_not_read_what_else_waits(server: DevServer, prefix: str) -> None:
    """A command that cancels one run costs the same however many wait."""
    prompt = Message(Role.USER, random_text(5_000))
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        for n in range(30):
            await store.submit(f"t{n}", [Submitted(run_id="run", prompt=prompt, queue="q")], queue="q")
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as sending:
        assert await sending.signal("t7", Signal(body=Cancelled(run_id="", reason="enough"), id="one"))
        assert not await sending.signal("t7", Signal(body=Cancelled(run_id="", reason="enough"), id="one"))
        assert received(sending) < 30_000
        assert (await sending.depth("q")).ready == 30


async def test_place_without_a_fence_is_given_to_two(
    server: DevServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: what keeps an offer for one worker is that the server compares."""

    async def take_at_once() -> int:
        async with (
            NatsStore(server.url, NatsSettings(prefix=prefix)) as here,
            NatsStore(server.url, NatsSettings(prefix=prefix)) as there,
        ):
            for store in (here, there):
                await store.depth("q")
            await submit(here, "t")
            offers: list[Offer | None] = []

            async def take(store: NatsStore) -> None:
                offers.append(await store.take(["q"], "w"))

            # Both know of the thread, and neither of the other's offer.
            for store in (here, there):
                await store._do(lambda session: session.index.sync())
            for store in (here, there):
                monkeypatch.setattr(store._worker._session.index, "sync", _nothing)  # type: ignore[union-attr]
            async with anyio.create_task_group() as group:
                group.start_soon(take, here)
                group.start_soon(take, there)
            return sum(offer is not None for offer in offers)

    monkeypatch.setattr(places, "_FENCE", "X-Nothing")
    assert await take_at_once() == 2


async def _nothing() -> None:
    """Read nothing new."""


async def test_tasks_that_take_at_once_share_their_looks_and_get_one_thread_each(
    server: DevServer, prefix: str
) -> None:
    threads = [f"t{n}" for n in range(40)]
    settings = NatsSettings(prefix=prefix)
    async with NatsStore(server.url, settings) as here, NatsStore(server.url, settings) as there:
        for name in threads:
            await submit(here, name)
        offers: list[Offer] = []

        async def take(store: NatsStore) -> None:
            offer = await store.take(["q"], "w", 60)
            assert offer is not None
            offers.append(offer)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for store in (here, there):
                    for _ in range(20):
                        group.start_soon(take, store)

        assert sorted(offer.thread_id for offer in offers) == sorted(threads)
        assert await here.take(["q"], "w") is None
        depth = await there.depth("q")
        assert (depth.ready, depth.held) == (0, 40)


async def test_one_look_is_enough_for_all_tasks_that_ask_before_it(server: DevServer, prefix: str) -> None:
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        for n in range(40):
            await submit(store, f"t{n}")
        await store.depth("q")
        offers: list[Offer | None] = []
        gate: list[asyncio.Event] = []

        async def keep_waiting(session: Session) -> None:
            gate.append(asyncio.Event())
            async with session.index.lock:
                await gate[0].wait()

        async def open_gate(session: Session) -> int:
            gate[0].set()
            return session.index.looks

        async def take() -> None:
            offers.append(await store.take(["q"], "w", 60))

        async with anyio.create_task_group() as group:
            group.start_soon(store._do, keep_waiting)
            await anyio.wait_all_tasks_blocked()
            for _ in range(40):
                group.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            before = await store._do(open_gate)

        assert len({offer.thread_id for offer in offers if offer is not None}) == 40
        assert await store._do(_count_looks) == before + 1


async def _count_looks(session: Session) -> int:
    return session.index.looks


async def test_offer_that_was_signalled_meanwhile_is_due_again_when_it_ends(server: DevServer, prefix: str) -> None:
    """The store that was offered it knows of no signal: its write is refused, and it reads."""
    settings = NatsSettings(prefix=prefix)
    async with NatsStore(server.url, settings) as here, NatsStore(server.url, settings) as there:
        await submit(here, "t")
        offer = await here.take(["q"], "w", 60)
        assert offer is not None
        assert await there.signal("t", Signal(body=Cancelled(run_id="", reason="enough"), id="s"))

        assert await offer.done()

        again = await there.take(["q"], "w", 60)
        assert again is not None
        assert again.thread_id == "t"
        assert not await offer.done()
