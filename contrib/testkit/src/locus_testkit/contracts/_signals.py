"""The laws of a store with the feature ``signals``: what is said to a run reaches it, wherever it is, and once."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from locus.core.journal import Answered, Cancelled
from locus.journal import Appended, Claim, JournalStore, Signal
from locus_testkit.contracts._queue import make_turn, queue_of, submit, take_offer
from locus_testkit.contracts._samples import texts
from locus_testkit.contracts._store import OpenStore, StoreContract, write
from locus_testkit.contracts.features import needs

__all__ = ["SignalLaws"]


def _cancel(name: str = "1", reason: str = "enough") -> Signal:
    return Signal(body=Cancelled(run_id="", reason=reason), id=name)


async def _send(store: JournalStore, thread_id: str, *signals: Signal) -> None:
    for signal in signals:
        assert await queue_of(store).signal(thread_id, signal) is True


def _listen(claim: Claim) -> list[Signal]:
    heard: list[Signal] = []
    claim.watch.on_signal = heard.append
    return heard


class SignalLaws(StoreContract):
    """Signals of a thread: sent by anybody, read by its holder."""

    async def wait_for(self, heard: Sequence[object]) -> None:
        """Wait until the store has said something by itself; it may look every few seconds."""
        with anyio.fail_after(self.patience):
            while not heard:  # noqa: ASYNC110  # another thread may say it
                await anyio.sleep(0.01)

    @needs("signals")
    async def test_signals_come_back_as_they_were_sent(self, open_store: OpenStore) -> None:
        """Whole, in their order, numbered from 1; a thread of its own each."""
        here, there = await self.handles(open_store)
        sent = [
            _cancel("a"),
            Signal(body=Answered(run_id="run", interrupt_id="i", answer={"amount": 3, "why": ["x", None]}), id="b"),
            Signal(body=make_turn("And then?", "next"), id="c"),
        ]
        for thread_id in ("t", "other"):
            await write(here, thread_id, *texts(1))
        await _send(here, "t", *sent)
        await _send(here, "other", _cancel("a"))
        found = await queue_of(there).signals("t")
        assert [(each.body, each.id, each.n) for each in found] == [(s.body, s.id, n) for n, s in enumerate(sent, 1)]
        assert [each.n for each in await queue_of(there).signals("other")] == [1]
        assert await queue_of(there).signals("unknown") == ()

    @needs("signals")
    async def test_signals_are_shown_by_a_claim(self, open_store: OpenStore) -> None:
        """Those that were left before it; a worker need not ask for them."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        assert (await here.claim("t", "w")).signals == ()
        await write(here, "other", *texts(1))
        await _send(here, "other", _cancel("a"), _cancel("b"))
        claim = await there.claim("other", "w")
        assert claim.signals == await queue_of(here).signals("other")
        assert [each.id for each in claim.signals] == ["a", "b"]

    @needs("signals")
    async def test_signals_of_a_next_turn_bring_a_thread_into_its_queue(self, open_store: OpenStore) -> None:
        """... where it was never in one; a thread that was stays in its own."""
        here, there = await self.handles(open_store)
        await write(here, "direct", *texts(1))
        await submit(here, "t", queue="other")
        for name in ("direct", "t"):
            await _send(there, name, Signal(body=make_turn("And then?", "next"), id="n"))
        offer = await take_offer(here)
        assert (offer.thread_id, await queue_of(here).take(("q",), "w")) == ("direct", None)
        assert (await take_offer(here, "other")).thread_id == "t"

    @needs("signals")
    async def test_signals_with_one_id_are_one(self, open_store: OpenStore) -> None:
        """Also where another process sends it again, or the first was forgotten meanwhile."""
        here, there = await self.handles(open_store)
        await write(here, "t", *texts(1))
        await _send(here, "t", _cancel("a"), _cancel("b"))
        assert await queue_of(there).signal("t", _cancel("a", "another")) is False
        claim = await there.claim("t", "w")
        assert await queue_of(there).forget_signals(claim, [1, 2]) is True
        assert await queue_of(here).signal("t", _cancel("a")) is False
        assert await queue_of(here).signals("t") == ()
        await _send(here, "t", _cancel("c"))
        assert [(each.id, each.n) for each in await queue_of(there).signals("t")] == [("c", 3)]

    @needs("signals")
    async def test_signals_are_forgotten_one_by_one(self, store: JournalStore) -> None:
        """By their numbers; the others are kept. To forget one that is not there does nothing."""
        await write(store, "t", *texts(1))
        await _send(store, "t", *[_cancel(str(n)) for n in range(4)])
        claim = await store.claim("t", "w")
        for numbers, left in (((), [1, 2, 3, 4]), ((3,), [1, 2, 4]), ((3, 9), [1, 2, 4]), ((1, 4), [2])):
            assert await queue_of(store).forget_signals(claim, numbers) is True
            assert [each.n for each in await queue_of(store).signals("t")] == left

    @needs("signals")
    async def test_signals_are_forgotten_by_the_holder_alone(self, open_store: OpenStore) -> None:
        """A worker whose claim is over takes no signal from the one that came after it."""
        here, there = await self.handles(open_store)
        await write(here, "t", *texts(1))
        stale = await here.claim("t", "w")
        await here.release(stale)
        await _send(here, "t", _cancel())
        fresh = await there.claim("t", "next")
        assert await queue_of(here).forget_signals(stale, [1]) is False
        assert len(await queue_of(there).signals("t")) == 1
        assert await queue_of(there).forget_signals(fresh, [1]) is True

    @needs("signals")
    async def test_signals_to_an_unknown_thread_are_refused(self, store: JournalStore) -> None:
        """... and make no thread."""
        assert await queue_of(store).signal("nobody", _cancel()) is False
        assert (await queue_of(store).signals("nobody"), await store.threads()) == ((), ())

    @needs("signals")
    async def test_signals_reach_a_held_thread(self, open_store: OpenStore) -> None:
        """The claim of the worker that holds it shows them, without being asked."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        heard = _listen(await here.claim("t", "w"))
        await _send(there, "t", _cancel(reason="stop it"))
        await self.wait_for(heard)
        assert (heard[0].body, heard[0].n) == (_cancel(reason="stop it").body, 1)

    @needs("signals")
    async def test_signals_have_a_free_thread_offered(self, open_store: OpenStore) -> None:
        """At once: one that was done, and one that sleeps; one that was never in a queue keeps them."""
        here, there = await self.handles(open_store)
        await write(here, "direct", *texts(1))
        for name in ("done", "asleep"):
            await submit(here, name)
        for _ in range(2):
            offer = await take_offer(here)
            await (offer.done() if offer.thread_id == "done" else offer.back(offer.lease * 100))
        assert await queue_of(there).take(("q",), "w") is None
        for name in ("done", "asleep", "direct"):
            await _send(there, name, _cancel())
        found = {(await take_offer(here)).thread_id for _ in range(2)}
        assert found == {"done", "asleep"}
        assert await queue_of(there).take(("q", ""), "w") is None
        assert len(await queue_of(here).signals("direct")) == 1

    @needs("signals")
    async def test_signals_during_an_offer_are_not_missed(self, open_store: OpenStore) -> None:
        """What comes after the worker looked last has the thread offered again, whatever the worker says."""
        here, there = await self.handles(open_store)
        for end in ("done", "back"):
            await submit(here, end)
            offer = await take_offer(here)
            await _send(there, offer.thread_id, _cancel())
            assert await queue_of(there).take(("none",), "w") is None
            assert await (offer.done() if end == "done" else offer.back(offer.lease * 100)) is True
            again = await take_offer(there)
            assert again.thread_id == offer.thread_id
            assert await again.back(again.lease * 100) is True
        assert await queue_of(there).take(("q",), "w") is None

    @needs("signals")
    async def test_signals_make_no_second_offer(self, open_store: OpenStore) -> None:
        """A thread that a worker was offered is not offered to another one because of a signal."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        await take_offer(here)
        await _send(there, "t", _cancel())
        assert await queue_of(there).take(("q",), "another") is None

    @needs("signals", "delete")
    async def test_signals_go_with_their_thread(self, store: JournalStore) -> None:
        """A thread of the same name begins without them."""
        await submit(store, "t")
        await _send(store, "t", _cancel())
        assert await store.delete("t") is True
        assert await queue_of(store).signals("t") == ()
        await submit(store, "t")
        assert await queue_of(store).signals("t") == ()
        await _send(store, "t", _cancel())
        assert [each.n for each in await queue_of(store).signals("t")] == [1]

    @needs("signals", "persistent")
    async def test_signals_are_found_by_another_handle(self, open_store: OpenStore) -> None:
        """What was sent is there when the place is opened again."""
        store = await open_store()
        await submit(store, "t")
        await _send(store, "t", _cancel())
        await self.close_store(store)
        assert [each.id for each in await queue_of(await open_store()).signals("t")] == ["1"]

    @needs("signals", "leases")
    async def test_signals_tell_a_worker_that_its_claim_is_lost(self, open_store: OpenStore) -> None:
        """The store finds it out by itself: the worker need not write for that."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        claim = await here.claim("t", "w")
        heard: list[bool] = []
        claim.watch.on_lost = lambda: heard.append(True)
        await self.expire(here, claim)
        assert heard == []
        await there.claim("t", "next")
        await self.wait_for(heard)
        assert claim.watch.is_lost

    @needs("signals", "leases")
    async def test_signals_report_a_lost_claim_when_a_write_is_refused(self, open_store: OpenStore) -> None:
        """A run that asks a model meanwhile waits for no write, and would hear of it only when the answer is there."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        claim = await here.claim("t", "w")
        await self.expire(here, claim)
        await there.claim("t", "next")
        is_refused = await here.append(claim, texts(1)) is Appended.FENCED
        assert claim.watch.is_lost or not is_refused  # that it is refused is law 3
