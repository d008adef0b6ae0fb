"""A page of a thread costs what it holds, and shows what is missing in it. That pages are the thread, a law says."""

from __future__ import annotations

from typing import Any

import pytest

from locus.core.errors import JournalDamaged
from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_plugin_nats.subjects import key_of

pytestmark = pytest.mark.anyio


def step(number: int) -> Outcome:
    """An entry."""
    return Outcome(run_id="run", step_id=StepId(0, "step", number), value=number)


async def write(store: NatsStore, thread_id: str, *batches: int, begun: int = 0) -> None:
    """Append so many entries at a time; messages without entries lie between and behind them."""
    claim = await store.claim(thread_id, "w")
    for size in batches:
        bodies: list[Body] = [step(begun + i) for i in range(size)]
        assert await store.append(claim, bodies) is Appended.OK
        begun += size
    await store.release(claim)


@pytest.fixture
def store(server: DevServer, prefix: str) -> NatsStore:
    return NatsStore(server.url, NatsSettings(prefix=prefix))


async def test_a_page_costs_what_it_holds(store: NatsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async with store:
        await write(store, "t", *[1] * 300)
        asked: list[int] = []
        wire = await store._do(_wire)
        ask = wire.ask_many

        async def count(*given: Any, **options: Any) -> Any:
            found = await ask(*given, **options)
            asked.append(len(found))
            return found

        monkeypatch.setattr(wire, "ask_many", count)
        assert [entry.n for entry in await store.read_page("t", 150, 10)] == [*range(151, 161)]
        assert sum(asked) < 30


async def _wire(session: Any) -> Any:
    return session.wire


async def test_a_page_with_a_missing_message_is_damaged(store: NatsStore) -> None:
    async with store:
        await write(store, "t", *[1] * 20)

        async def drop(session: Any) -> None:
            found = await session.message(seq=1, next_by_subj=session.names.thread(key_of("t")))
            while found.head.n != 10:
                found = await session.message(seq=found.seq + 1, next_by_subj=session.names.thread(key_of("t")))
            await session.wire.api(f"STREAM.MSG.DELETE.{session.names.journal}", seq=found.seq)

        await store._do(drop)
        assert len(await store.read_page("t", 0, 9)) == 9
        assert len(await store.read_page("t", 10, 5)) == 5
        with pytest.raises(JournalDamaged, match="entry 10 is missing"):
            await store.read_page("t", 5, 10)
