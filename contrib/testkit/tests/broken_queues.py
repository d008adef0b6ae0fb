"""Stores that break what a law says of offers and signals, each in one place."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import Any

import anyio.lowlevel
from attrs import evolve

from locus.core.codec import encode_data
from locus.core.journal import Body, Outcome, Submitted
from locus.core.messages import Message, Role
from locus.journal import Claim, Offer, PriorityTurns, QueueDepth, Signal, Watch
from locus.journal.memory_queue import MemoryOffer

from .stores import Complete

__all__ = ["BROKEN"]


class LacksDepth(Complete):
    depth = None  # type: ignore[assignment]


class OffersNothing(Complete):
    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        return None


class SubmitsOverWhatIsThere(Complete):
    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        self._threads.pop(thread_id, None)
        return await super().submit(thread_id, bodies, **options)


class LooksThenSubmits(Complete):
    """Two statements where one belongs."""

    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        is_new = thread_id not in self._threads
        await anyio.lowlevel.checkpoint()
        if is_new:
            self._threads.pop(thread_id, None)
            await super().submit(thread_id, bodies, **options)
        return is_new


class DispatchesThenWrites(Complete):
    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        await super().submit(thread_id, (), **options)
        for body in bodies:
            if isinstance(body, Outcome):
                encode_data(body.value)
        self._threads[thread_id].bodies[:] = bodies
        return True


class OffersToAnybody(Complete):
    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        offer = await super().take(queues, worker, wait)
        if offer is not None and offer.delivered == 1:
            await offer.extend()
            self._places._put(offer.thread_id, self._places._places[offer.thread_id], self.clock.now())
        return offer


class IsDoneWhenOffered(Complete):
    """Acknowledged first."""

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        offer = await super().take(queues, worker, wait)
        if offer is not None:
            self._places._put(offer.thread_id, self._places._places[offer.thread_id], None)
        return offer


class OffersWhatIsDone(Complete):
    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        offer = await super().take(queues, worker, wait)
        if isinstance(offer, MemoryOffer):
            offer.done = offer.extend  # type: ignore[method-assign]
        return offer


class _Changed(Complete):
    """Makes offers that are changed a little."""

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        offer = await super().take(queues, worker, wait)
        if isinstance(offer, MemoryOffer):
            self.change(offer)
        return offer

    def change(self, offer: MemoryOffer) -> None:
        raise NotImplementedError


class CannotExtend(_Changed):
    def change(self, offer: MemoryOffer) -> None:
        async def extend() -> bool:
            return True

        offer.extend = extend  # type: ignore[method-assign]


class EndsWhatAnotherHas(_Changed):
    def change(self, offer: MemoryOffer) -> None:
        async def done() -> bool:
            offer.number = self._places._places[offer.thread_id].offer
            return await MemoryOffer.done(offer)

        offer.done = done  # type: ignore[method-assign]


class ForgetsDelays(_Changed):
    def change(self, offer: MemoryOffer) -> None:
        async def back(delay: float = 0.0, *, queue: str | None = None) -> bool:
            return await MemoryOffer.back(offer, queue=queue)

        offer.back = back  # type: ignore[method-assign]


class StaysInItsQueue(_Changed):
    def change(self, offer: MemoryOffer) -> None:
        async def back(delay: float = 0.0, *, queue: str | None = None) -> bool:
            return await MemoryOffer.back(offer, delay)

        offer.back = back  # type: ignore[method-assign]


class ForgetsTimes(Complete):
    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        return await super().submit(thread_id, bodies, **options | {"not_before": None})


class ForgetsPriorities(Complete):
    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        return await super().submit(thread_id, bodies, **options | {"priority": 0})


class Starves(Complete):
    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        self._places._turns = PriorityTurns()  # always the beginning of the order
        return await super().take(queues, worker, wait)


class TakesInAnyOrder(Complete):
    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        return await super().take(sorted(queues), worker, wait)


class CountsHeldAsReady(Complete):
    async def depth(self, queue: str) -> QueueDepth:
        depth = await super().depth(queue)
        return evolve(depth, ready=depth.ready + depth.held)


class DoesNotWait(Complete):
    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        return await super().take(queues, worker)


class TakesForTheGone(Complete):
    gone = 0

    async def take(self, queues: Sequence[str], worker: str, wait: float = 0.0) -> Offer | None:
        try:
            return await super().take(queues, worker, wait)
        except anyio.get_cancelled_exc_class():
            self.gone += 1
            raise

    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        made = await super().submit(thread_id, bodies, **options)
        if self.gone:
            await super().take([options["queue"]], "gone")
        return made


class ClaimsEndOffers(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        place = self._places._places.get(thread_id)
        if place is not None:
            place.offer = 0
        return await super().claim(thread_id, worker)


class OffersWhatIsGone(Complete):
    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        place = self._places._places.get(thread_id)
        deleted = await super().delete(thread_id, head=head)
        if deleted and place is not None:
            self._places._places[thread_id] = place
        return deleted


class NormalisesNames(Complete):
    async def submit(self, thread_id: str, bodies: Sequence[Body], **options: Any) -> bool:
        return await super().submit(
            thread_id, bodies, **options | {"queue": unicodedata.normalize("NFC", options["queue"])}
        )


class KeepsSignalsAsText(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        if isinstance(signal.body, Submitted):
            signal = evolve(signal, body=evolve(signal.body, prompt=Message(Role.USER, "")))
        return await super().signal(thread_id, signal)


class SendsTwice(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        place = self._places._places.get(thread_id)
        if place is not None and all(each.id != signal.id for each in place.signals):
            place.sent.discard(signal.id)  # known only as long as it is kept
        return await super().signal(thread_id, signal)


class ForgetsEverything(Complete):
    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        return await super().forget_signals(claim, range(max(numbers, default=0) + 1))


class ForgetsForAnybody(Complete):
    async def forget_signals(self, claim: Claim, numbers: Collection[int]) -> bool:
        return await super().forget_signals(evolve(claim, token=self.holder(claim.thread_id)), numbers)


class ClaimsShowNoSignals(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        return evolve(await super().claim(thread_id, worker), signals=())


class LeavesDirectThreadsAlone(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        is_direct = thread_id in self._threads and thread_id not in self._places._places
        made = await super().signal(thread_id, signal)
        if is_direct:
            self._places._put(thread_id, self._places._places[thread_id], None)
        return made


class MakesThreadsOfSignals(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        if thread_id not in self._threads:
            await self.release(await self.claim(thread_id, "signal"))
        return await super().signal(thread_id, signal)


class KeepsSignalsToItself(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        place = self._places._places.get(thread_id)
        queue, name = place, "" if place is None else place.queue
        if queue is not None and not queue.offer:
            queue.queue = ""
        made = await super().signal(thread_id, signal)
        if queue is not None:
            queue.queue = name
        return made


class MissesLateSignals(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        made = await super().signal(thread_id, signal)
        self._places._places.get(thread_id, signal).is_signalled = False  # type: ignore[union-attr]
        return made


class OffersWhatIsSignalled(Complete):
    async def signal(self, thread_id: str, signal: Signal) -> bool:
        made = await super().signal(thread_id, signal)
        place = self._places._places.get(thread_id)
        if place is not None and place.queue:
            self._places._put(thread_id, place, self.clock.now())
        return made


class KeepsWhatItKnowsToItself(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, watch=Watch())


#: Which tests of the contract each of them must fail.
BROKEN: dict[Callable[[], Any], tuple[str, ...]] = {
    LacksDepth: ("test_queue_store_has_every_method_of_the_protocol",),
    OffersNothing: ("test_queue_submit_is_entries_and_an_offer", "test_queue_another_handle_finds_what_waits"),
    SubmitsOverWhatIsThere: ("test_queue_submit_changes_no_thread_that_is_there",),
    LooksThenSubmits: ("test_queue_submit_twice_is_one_run",),
    DispatchesThenWrites: ("test_queue_submit_that_cannot_be_stored_leaves_nothing",),
    OffersToAnybody: ("test_queue_thread_is_offered_to_one_worker",),
    IsDoneWhenOffered: ("test_queue_offer_is_made_again_until_it_is_done",),
    OffersWhatIsDone: ("test_queue_offer_is_made_again_until_it_is_done",),
    CannotExtend: ("test_queue_offer_that_is_extended_stays",),
    EndsWhatAnotherHas: ("test_queue_lost_offer_ends_nothing",),
    ForgetsDelays: ("test_queue_thread_that_is_given_back_waits",),
    StaysInItsQueue: ("test_queue_thread_can_be_given_back_to_another_queue",),
    ForgetsTimes: ("test_queue_submitted_thread_waits_for_its_time",),
    ForgetsPriorities: ("test_queue_higher_priority_goes_first",),
    Starves: (
        "test_queue_low_priority_is_not_starved",
        "test_queue_low_priority_is_not_starved_where_several_take_turns",
    ),
    TakesInAnyOrder: ("test_queue_others_are_left_alone",),
    CountsHeldAsReady: ("test_queue_depth_adds_up",),
    DoesNotWait: ("test_queue_worker_that_waits_is_offered_what_comes",),
    TakesForTheGone: ("test_queue_worker_that_stops_waiting_takes_nothing",),
    ClaimsEndOffers: ("test_queue_offer_is_not_a_claim",),
    OffersWhatIsGone: ("test_queue_deleted_thread_is_not_offered", "test_signals_go_with_their_thread"),
    NormalisesNames: ("test_queue_any_text_names_one",),
    KeepsSignalsAsText: ("test_signals_come_back_as_they_were_sent",),
    SendsTwice: ("test_signals_with_one_id_are_one",),
    ForgetsEverything: ("test_signals_are_forgotten_one_by_one",),
    ClaimsShowNoSignals: ("test_signals_are_shown_by_a_claim",),
    LeavesDirectThreadsAlone: ("test_signals_of_a_next_turn_bring_a_thread_into_its_queue",),
    ForgetsForAnybody: ("test_signals_are_forgotten_by_the_holder_alone",),
    MakesThreadsOfSignals: ("test_signals_to_an_unknown_thread_are_refused",),
    KeepsSignalsToItself: ("test_signals_have_a_free_thread_offered",),
    MissesLateSignals: ("test_signals_during_an_offer_are_not_missed",),
    OffersWhatIsSignalled: ("test_signals_make_no_second_offer",),
    KeepsWhatItKnowsToItself: (
        "test_signals_reach_a_held_thread",
        "test_signals_tell_a_worker_that_its_claim_is_lost",
        "test_signals_report_a_lost_claim_when_a_write_is_refused",
    ),
}
