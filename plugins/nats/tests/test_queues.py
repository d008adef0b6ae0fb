"""What the laws of a queue do not say: how many messages, servers that are killed, and fences that are broken."""

from __future__ import annotations

import anyio
import pytest

from locus.core.journal import Submitted
from locus.core.messages import Message, Role
from locus.journal import Offer
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
