"""The laws of a store with the feature ``queue``: what is handed in is offered until it is done, to one worker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import anyio

from locus.core.journal import Body, Outcome, StepId, Submitted
from locus.core.messages import Message, Role
from locus.journal import JournalStore, Offer, QueueDepth, QueueStore
from locus_testkit.contracts._law_2_commit import Unstorable
from locus_testkit.contracts._samples import bodies_of, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, write
from locus_testkit.contracts.features import needs

__all__ = ["QueueLaws", "make_turn", "queue_of", "submit", "take_offer"]

#: The end of time.
_NEVER = datetime.max.replace(tzinfo=UTC)


def queue_of(store: JournalStore) -> QueueStore:
    """The queue of a store that declares one."""
    return cast(QueueStore, store)


def make_turn(text: str = "Do it.", run_id: str = "run") -> Submitted:
    """A turn that was handed in."""
    return Submitted(run_id=run_id, prompt=Message(Role.USER, text), queue="q")


async def submit(
    store: JournalStore,
    thread_id: str,
    *more: Body,
    queue: str = "q",
    priority: int = 0,
    not_before: datetime | None = None,
) -> None:
    """Hand a thread in, and insist that it was new."""
    bodies = (make_turn(), *more)
    made = await queue_of(store).submit(thread_id, bodies, queue=queue, priority=priority, not_before=not_before)
    assert made is True


async def take_offer(store: JournalStore, *queues: str, wait: float = 0.0) -> Offer:
    """The next offer, which there must be."""
    found = await queue_of(store).take(queues or ("q",), "w", wait)
    if found is None:  # a handle may hear a moment later what another one has done
        found = await queue_of(store).take(queues or ("q",), "w", 5.0)
    assert found is not None, f"nothing was offered from {queues or ('q',)}"
    return found


class QueueLaws(StoreContract):
    """A submit, an offer, and the end of an offer."""

    @needs("queue")
    async def test_queue_store_has_every_method_of_the_protocol(self, store: JournalStore) -> None:
        """A queue is recognised by its methods, and is empty at first."""
        assert isinstance(store, QueueStore)
        assert await store.take(("q",), "w") is None
        assert (await store.depth("q"), await store.queues()) == (QueueDepth(), ())

    @needs("queue")
    async def test_queue_submit_is_entries_and_an_offer(self, open_store: OpenStore) -> None:
        """What was submitted is a thread with these entries, which no worker holds, and one is offered it."""
        here, there = await self.handles(open_store)
        told = (make_turn(), *texts(2))
        await submit(here, "t", *texts(2))
        offer = await take_offer(there)
        assert (offer.thread_id, offer.queue, offer.priority, offer.delivered) == ("t", "q", 0, 1)
        assert offer.lease > 0
        claim = await there.claim("t", "w")
        assert (claim.head, bodies_of(claim.entries), claim.is_abandoned) == (3, list(told), False)
        assert [info.thread_id for info in await here.threads()] == ["t"]

    @needs("queue")
    async def test_queue_submit_twice_is_one_run(self, open_store: OpenStore) -> None:
        """Of those who submit one thread, at once or later, one does; the entries are that one's."""
        here, there = await self.handles(open_store)
        made: dict[str, bool] = {}

        async def hand_in(store: JournalStore, run_id: str) -> None:
            made[run_id] = await queue_of(store).submit("t", [make_turn(run_id=run_id)], queue="q")

        async with anyio.create_task_group() as group:
            for n in range(6):
                group.start_soon(hand_in, (here, there)[n % 2], f"run-{n}")
        (winner,) = [run_id for run_id, is_new in made.items() if is_new]
        await hand_in(there, "late")
        assert made["late"] is False
        offer = await take_offer(here)
        await offer.done()
        await hand_in(there, "later")
        assert made["later"] is False
        assert await queue_of(there).take(("q",), "w") is None
        assert bodies_of(await there.read("t")) == [make_turn(run_id=winner)]

    @needs("queue")
    async def test_queue_submit_changes_no_thread_that_is_there(self, open_store: OpenStore) -> None:
        """A thread with entries, or one that a worker holds, is neither written to nor offered."""
        here, there = await self.handles(open_store)
        await write(here, "written", *texts(2))
        await here.claim("held", "w")
        for thread_id in ("written", "held"):
            assert await queue_of(there).submit(thread_id, [make_turn()], queue="q") is False
        assert bodies_of(await here.read("written")) == list(texts(2))
        assert (await here.read("held"), await queue_of(here).take(("q",), "w")) == ((), None)

    @needs("queue")
    async def test_queue_submit_that_cannot_be_stored_leaves_nothing(self, store: JournalStore) -> None:
        """Neither a thread nor an offer, where the entries have no form that can be stored."""
        bad = Outcome(run_id="run", step_id=StepId(0, "bad"), value=Unstorable())
        try:
            stored = await queue_of(store).submit("t", [make_turn(), bad], queue="q")
        except Exception:  # noqa: BLE001  # whatever a store raises for it
            stored = False
        offer = await queue_of(store).take(("q",), "w")
        assert (len(await store.read("t")), offer is not None) == ((2, True) if stored else (0, False))

    @needs("queue")
    async def test_queue_thread_is_offered_to_one_worker(self, open_store: OpenStore) -> None:
        """Workers that take at the same moment get different threads, and every thread is offered."""
        here, there = await self.handles(open_store)
        names = [f"t{n}" for n in range(6)]
        for name in names:
            await submit(here, name)
        found: list[str] = []

        async def take(store: JournalStore) -> None:
            offer = await queue_of(store).take(("q",), "w")
            if offer is not None:
                found.append(offer.thread_id)

        async with anyio.create_task_group() as group:
            for n in range(10):
                group.start_soon(take, (here, there)[n % 2])
        assert sorted(found) == names

    @needs("queue")
    async def test_queue_offer_is_made_again_until_it_is_done(self, open_store: OpenStore) -> None:
        """A worker that says nothing for a lease has lost its offer; what was done is not offered again."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        for delivered in (1, 2, 3):
            offer = await take_offer(there)
            assert (offer.thread_id, offer.delivered) == ("t", delivered)
            assert await queue_of(here).take(("q",), "another") is None
            await self.pass_time(here, offer.lease * 1.1)
        last = await take_offer(here)
        assert await last.done() is True
        assert await last.done() is False
        await self.pass_time(here, last.lease * 1.1)
        assert await queue_of(there).take(("q",), "w") is None

    @needs("queue")
    async def test_queue_offer_that_is_extended_stays(self, open_store: OpenStore) -> None:
        """A worker that lives keeps its offer for longer than a lease."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        offer = await take_offer(here)
        for _ in range(3):
            await self.pass_time(here, offer.lease * 0.6)
            assert await queue_of(there).take(("q",), "another") is None
            assert await offer.extend() is True
        assert await offer.done() is True

    @needs("queue")
    async def test_queue_lost_offer_ends_nothing(self, open_store: OpenStore) -> None:
        """A worker that comes back from a long silence neither ends nor moves what another one was offered since."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        lost = await take_offer(here)
        await self.pass_time(here, lost.lease * 1.1)
        offer = await take_offer(there)
        assert [await lost.extend(), await lost.back(queue="other"), await lost.done()] == [False, False, False]
        assert await queue_of(here).take(("q", "other"), "another") is None
        assert await offer.extend() is True
        assert await offer.done() is True

    @needs("queue")
    async def test_queue_thread_that_is_given_back_waits(self, open_store: OpenStore) -> None:
        """It is offered again when its time has come, as if for the first time, and not before."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        offer = await take_offer(here)
        assert await offer.back(offer.lease * 2) is True
        assert await offer.done() is False
        await self.pass_time(here, offer.lease * 1.5)
        assert await queue_of(there).take(("q",), "w") is None
        await self.pass_time(here, offer.lease)
        again = await take_offer(there)
        assert (again.thread_id, again.delivered) == ("t", 1)
        assert await again.back() is True
        assert (await take_offer(here)).thread_id == "t"

    @needs("queue")
    async def test_queue_thread_can_be_given_back_to_another_queue(self, store: JournalStore) -> None:
        """... where it stays, with its priority."""
        await submit(store, "t", priority=1)
        assert await (await take_offer(store)).back(queue="other") is True
        assert await queue_of(store).take(("q",), "w") is None
        offer = await take_offer(store, "other")
        assert (offer.thread_id, offer.queue, offer.priority) == ("t", "other", 1)

    @needs("queue")
    async def test_queue_submitted_thread_waits_for_its_time(self, store: JournalStore) -> None:
        """A thread that was submitted for later is not offered now; one whose time has passed is."""
        await submit(store, "never", not_before=_NEVER - timedelta(days=400))
        assert await queue_of(store).take(("q",), "w") is None
        await submit(store, "now", not_before=datetime(2020, 1, 1, tzinfo=UTC))
        assert (await take_offer(store)).thread_id == "now"
        assert await queue_of(store).take(("q",), "w") is None

    @needs("queue")
    async def test_queue_higher_priority_goes_first(self, store: JournalStore) -> None:
        """Whatever was submitted first; and of one priority, what was submitted first."""
        for name, priority in (("a", 0), ("b", 0), ("c", 1), ("d", 2)):
            await submit(store, name, priority=priority)
            await self.pass_time(store, 0.01)
        assert [(await take_offer(store)).thread_id for _ in range(4)] == ["d", "c", "a", "b"]

    @needs("queue")
    async def test_queue_low_priority_is_not_starved(self, store: JournalStore) -> None:
        """However much of a higher priority there is, each has its turn within twelve."""
        for n in range(24):
            await submit(store, f"high {n}", priority=2)
        await submit(store, "low", priority=0)
        await submit(store, "middle", priority=1)
        found = [(await take_offer(store)).thread_id for _ in range(12)]
        assert {"low", "middle"} < set(found)
        assert found[0].startswith("high")

    @needs("queue")
    async def test_queue_low_priority_is_not_starved_where_several_take_turns(self, store: JournalStore) -> None:
        """A worker that takes from two queues in turn comes to the low priorities of each of them."""
        for queue in ("a", "b"):
            for n in range(12):
                await submit(store, f"{queue} high {n}", queue=queue, priority=2)
            await submit(store, f"{queue} low", queue=queue, priority=0)
            await submit(store, f"{queue} middle", queue=queue, priority=1)
        found = [(await take_offer(store, *(("a", "b"), ("b", "a"))[n % 2])).thread_id for n in range(24)]
        assert {"a low", "a middle", "b low", "b middle"} < set(found)

    @needs("queue")
    async def test_queue_others_are_left_alone(self, store: JournalStore) -> None:
        """Only from the queues that are named, and from the first of them that has something."""
        for queue in ("a", "b", "tenant:*"):
            await submit(store, f"of {queue}", queue=queue)
        assert await queue_of(store).take(("", "A", "tenant:x", "%"), "w") is None
        found = [(await take_offer(store, *order)).queue for order in (("b", "a"), ("b", "a"), ("none", "tenant:*"))]
        assert found == ["b", "a", "tenant:*"]

    @needs("queue")
    async def test_queue_depth_adds_up(self, open_store: OpenStore) -> None:
        """What is ready, held and sleeping is what was submitted and is not done; every handle counts the same."""
        here, there = await self.handles(open_store)
        for name in ("a", "b", "c", "d"):
            await submit(here, name)
        await submit(here, "later", not_before=_NEVER - timedelta(days=400))
        await submit(here, "elsewhere", queue="other")
        depth = await queue_of(there).depth("q")
        assert (depth.ready, depth.held, depth.sleeping, depth.redelivered) == (4, 0, 1, 0)
        assert depth.oldest is not None
        assert await queue_of(there).queues() == ("other", "q")
        lost, kept, over, back = [await take_offer(here) for _ in range(4)]
        await over.done()
        await back.back(back.lease * 10)
        depth = await queue_of(there).depth("q")
        assert (depth.ready, depth.held, depth.sleeping, depth.oldest) == (0, 2, 2, None)
        await self.pass_time(here, lost.lease * 0.6)
        await kept.extend()
        await self.pass_time(here, lost.lease * 0.6)
        depth = await queue_of(there).depth("q")
        assert (depth.ready, depth.held, depth.sleeping, depth.redelivered) == (1, 1, 2, 1)
        assert (await take_offer(there)).delivered == 2
        assert await kept.done() is True
        depth = await queue_of(here).depth("q")
        assert (depth.ready, depth.held, depth.sleeping, depth.redelivered) == (0, 1, 2, 1)
        await (await take_offer(here, "other")).done()
        assert await queue_of(there).queues() == ("q",)

    @needs("queue")
    async def test_queue_worker_that_waits_is_offered_what_comes(self, open_store: OpenStore) -> None:
        """A worker need not ask again and again: it gets what is submitted while it waits."""
        here, there = await self.handles(open_store)
        found: list[str] = []

        async def wait() -> None:
            found.append((await take_offer(there, wait=60)).thread_id)

        with anyio.fail_after(self.patience):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await submit(here, "t")
        assert found == ["t"]

    @needs("queue")
    async def test_queue_worker_that_stops_waiting_takes_nothing(self, store: JournalStore) -> None:
        """What comes after a cancelled wait is offered to the next worker."""
        with anyio.move_on_after(0.05):
            await queue_of(store).take(("q",), "gone", 60)
        await submit(store, "t")
        assert (await take_offer(store, wait=10)).delivered == 1

    @needs("queue")
    async def test_queue_offer_is_not_a_claim(self, open_store: OpenStore) -> None:
        """A worker may claim a thread and write to it without an offer, and an offer stays when it does."""
        here, there = await self.handles(open_store)
        await submit(here, "t")
        offer = await take_offer(here)
        claim = await there.claim("t", "w")
        await there.append(claim, texts(1))
        await there.release(claim)
        assert await offer.extend() is True
        assert await offer.back() is True
        assert (await take_offer(there)).thread_id == "t"
        assert (await here.claim("t", "w")).head == 2

    @needs("queue", "delete")
    async def test_queue_deleted_thread_is_not_offered(self, store: JournalStore) -> None:
        """Neither one that waits nor one that was offered; the name may be submitted again."""
        for name in ("a", "b"):
            await submit(store, name)
        offer = await take_offer(store)
        for name in ("a", "b"):
            assert await store.delete(name) is True
        assert await offer.done() is False
        await self.pass_time(store, offer.lease * 1.1)
        assert await queue_of(store).take(("q",), "w") is None
        assert await queue_of(store).depth("q") == QueueDepth()
        await submit(store, offer.thread_id)
        assert (await take_offer(store)).delivered == 1

    @needs("queue", "persistent")
    async def test_queue_another_handle_finds_what_waits(self, open_store: OpenStore) -> None:
        """What was submitted is offered when the place is opened again, and what was done is not."""
        store = await open_store()
        for name in ("a", "b"):
            await submit(store, name, priority=1)
        first = await take_offer(store)
        await first.done()
        await self.close_store(store)
        again = await take_offer(await open_store())
        assert ({first.thread_id, again.thread_id}, again.priority) == ({"a", "b"}, 1)

    @needs("queue")
    async def test_queue_any_text_names_one(self, store: JournalStore) -> None:
        """Names of queues and workers are text, not patterns or paths."""
        names = ["a", "A", "a b", "%", "'; --", "a/b", "a.b", "*", ">", "\u00e9", "e\u0301", "\U0001f600", "x" * 200]
        for name in names:
            await submit(store, f"of {name}", queue=name)
        assert await queue_of(store).queues() == tuple(sorted(names))
        for name in names:
            offer = await queue_of(store).take((name,), name)
            assert offer is not None
            assert offer.thread_id == f"of {name}"
