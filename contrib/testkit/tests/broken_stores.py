"""Stores that break what a law says of claims, entries, times and threads, each in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

import anyio
import anyio.lowlevel
from attrs import evolve

from locus.core.codec import encode_data
from locus.core.errors import ThreadBusy
from locus.core.journal import Body, Entry, Outcome, Transition
from locus.core.state import AgentState
from locus.journal import Appended, Claim, MemoryStore, ThreadInfo, ThreadQuery

from .stores import Complete

__all__ = ["BROKEN"]


class LacksDelete(Complete):
    delete = None  # type: ignore[assignment]


class CallsItselfForgetful(Complete):
    def __init__(self) -> None:
        super().__init__()
        self.keeps_history = False


class BeginsAtOne(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, head=max(1, claim.head))


class LosesTheLastEntry(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, entries=claim.entries[:-1])


class KeepsPlainJson(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [self._through(body) for body in bodies])

    def _through(self, body: Body) -> Body:
        if not isinstance(body, Outcome):
            return body
        return evolve(body, value=json.loads(json.dumps(encode_data(body.value))))


class CutsLongTexts(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [self._cut(body) for body in bodies])

    def _cut(self, body: Body) -> Body:
        if isinstance(body, Outcome) and isinstance(body.value, str):
            return evolve(body, value=body.value[:65_535])
        return body


class NumbersFromZero(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return tuple(evolve(entry, n=entry.n - 1) for entry in await super().read(thread_id, after))


class ForgetsParents(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return tuple(evolve(entry, parent="") for entry in await super().read(thread_id, after))


class AppendsOneByOne(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        got = Appended.OK
        for body in bodies:
            got = await super().append(claim, [body])
            await anyio.lowlevel.checkpoint()
        return got

    def add_entries(self, claim: Claim, bodies: Sequence[Body]) -> Coroutine[Any, Any, Appended]:
        return MemoryStore.append(self, claim, bodies)


class RefusesInTheMiddle(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        for body in bodies:
            if isinstance(body, Outcome):
                encode_data(body.value)
            await super().append(claim, [body])
        return Appended.OK


class OverwritesWhatOthersAppend(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        seen = list(self._threads[claim.thread_id].bodies)
        await anyio.lowlevel.checkpoint()
        self._threads[claim.thread_id].bodies[:] = seen
        return await super().append(claim, bodies)

    def add_entries(self, claim: Claim, bodies: Sequence[Body]) -> Coroutine[Any, Any, Appended]:
        return MemoryStore.append(self, claim, bodies)


class ReusesTokens(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        thread = self._threads[thread_id]
        token = f"{thread_id}-{worker}"
        if thread.held is not None:
            thread.held = evolve(thread.held, token=token)
        return evolve(claim, token=token)


class NeverBusy(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        if thread_id in self._threads:
            self._threads[thread_id].held = None
        return await super().claim(thread_id, worker)


class HidesTheHolder(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        try:
            return await super().claim(thread_id, worker)
        except ThreadBusy:
            raise ThreadBusy(thread_id, "somebody") from None

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        self._threads[thread_id].held = None
        return await super().delete(thread_id, head=head)


class FencesBeforeItRefuses(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        try:
            return await super().claim(thread_id, worker)
        except ThreadBusy:
            thread = self._threads[thread_id]
            if thread.held is not None:
                thread.held = evolve(thread.held, token="nobody's")
            raise


class ClaimsInTwoSteps(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        thread = self._threads.get(thread_id)
        if thread is not None and thread.held is not None:
            raise ThreadBusy(thread_id, thread.held.worker)
        await anyio.lowlevel.checkpoint()
        if thread_id in self._threads:
            self._threads[thread_id].held = None
        return await super().claim(thread_id, worker)


class NeverReleases(Complete):
    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        pass


class AcceptsStaleWriters(Complete):
    def _current(self, claim: Claim) -> Claim:
        held = self._threads[claim.thread_id].held
        return claim if held is None else evolve(claim, token=held.token)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(self._current(claim), bodies)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        return await super().snapshot(self._current(claim), at, state, last)

    async def renew(self, claim: Claim) -> bool:
        return True

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        await super().release(self._current(claim), not_before)


class LetsReleasedWritersGoOn(Complete):
    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        held = self._threads[claim.thread_id].held
        await super().release(claim, not_before)
        self._threads[claim.thread_id].held = held

    async def claim(self, thread_id: str, worker: str) -> Claim:
        if thread_id in self._threads:
            self._threads[thread_id].held = None
        return await super().claim(thread_id, worker)


class FencesByTheNumberOfEntries(AcceptsStaleWriters):
    def __init__(self) -> None:
        super().__init__()
        self._heads: dict[str, int] = {}

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        head = len(self._threads[claim.thread_id].bodies)
        if self._heads.setdefault(claim.token, claim.head) != head:
            return Appended.FENCED
        self._heads[claim.token] = head + len(bodies)
        return await super().append(claim, bodies)


class SnapshotsOffByOne(Complete):
    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        return await super().snapshot(claim, min(at + 1, len(self._threads[claim.thread_id].bodies)), state, last)


class MixesSnapshots(Complete):
    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        kept = self._threads[claim.thread_id].snapshot
        return await super().snapshot(claim, at if kept is None else max(at, kept.at), state, last)


class PrunesBeforeASnapshot(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        thread = self._threads.get(thread_id)
        pruned = thread.snapshot.at if thread is not None and thread.snapshot is not None else 0
        return await super().read(thread_id, max(after, pruned))


class RemembersSteps(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, entries=tuple(sorted(claim.entries, key=lambda e: isinstance(e.body, Outcome))))


class SignsForOthers(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        held = self._threads[thread_id].held
        token = "nobody's" if held is None else held.token
        return tuple(evolve(entry, writer=token) for entry in await super().read(thread_id, after))


class TakesWhatItPeeksAt(Complete):
    async def peek(self, thread_id: str) -> Claim | None:
        claim = await self.claim(thread_id, "peek")
        await self.release(claim)
        return evolve(claim, token="") if claim.head else None


class WithoutHistory(MemoryStore):
    def __init__(self) -> None:
        super().__init__(history=False)


class LatestThatAcceptsStaleStates(WithoutHistory):
    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        held = self._threads[claim.thread_id].held
        current = claim if held is None else evolve(claim, token=held.token)
        return await super().snapshot(current, at, state, last)


class LatestThatKeepsOldSteps(WithoutHistory):
    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        kept = list(self._threads[claim.thread_id].bodies)
        done = await super().snapshot(claim, at, state, last)
        self._threads[claim.thread_id].bodies = kept
        return done


class ReadsOnlyWhatIsFree(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        await super().release(await super().claim(thread_id, "reader"))
        return await super().read(thread_id, after)


class ReadsFromTheNumberOn(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return await super().read(thread_id, max(0, after - 1))


class AlwaysReady(Complete):
    async def next_ready(self, now: datetime) -> str | None:
        return min(self._threads, default=None)


class ComparesTimesAsText(Complete):
    async def next_ready(self, now: datetime) -> str | None:
        for thread_id, thread in self._threads.items():
            due = thread.not_before
            if due is not None and due.isoformat() <= now.isoformat():
                return thread_id
        return None


class RemembersOldTimes(Complete):
    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        kept = self._threads[claim.thread_id].not_before
        await super().release(claim, not_before or kept)


class FoldsCase(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        return await super().claim(thread_id.casefold(), worker)

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return await super().read(thread_id.casefold(), after)


class SharesOneJournal(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        for thread in self._threads.values():
            if thread.held is None or thread.held.token != claim.token:
                thread.bodies.extend(bodies)
        return await super().append(claim, bodies)


class ListsOldestFirst(Complete):
    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return (await super().threads(query))[::-1]


class ListsAllAsEnded(Complete):
    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return tuple(evolve(info, status="ended") for info in await super().threads(query))


class ForgetsTitles(Complete):
    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return tuple(evolve(info, title="") for info in await super().threads(query))


class SelectsEverything(Complete):
    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return await super().threads()


class IgnoresLimits(Complete):
    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return await super().threads(None if query is None else evolve(query, limit=None))


class ForgetsAgents(Complete):
    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return tuple(evolve(info, agent_id="") for info in await super().threads(query))


class TakesForksForCrashed(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].forked_at = 0


class ForgetsOrigins(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].forked_from = None


class DeletesWhatWentOn(Complete):
    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        return await super().delete(thread_id)


class DeletesOnlyEntries(Complete):
    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        if thread_id in self._threads:
            self._threads[thread_id].bodies.clear()
        return thread_id in self._threads


#: Which tests of the contract each of them must fail.
BROKEN: dict[Callable[[], Any], tuple[str, ...]] = {
    LacksDelete: ("test_store_has_every_method_of_the_protocol",),
    CallsItselfForgetful: ("test_history_is_kept_as_declared",),
    BeginsAtOne: ("test_new_thread_is_empty",),
    LosesTheLastEntry: ("test_law_1_state_is_the_fold_of_the_entries",),
    KeepsPlainJson: ("test_law_1_every_kind_of_entry_comes_back_equal",),
    CutsLongTexts: ("test_law_6_large_values_come_back_equal", "test_law_6_no_size_is_special"),
    NumbersFromZero: ("test_law_1_entries_are_numbered_from_one",),
    ForgetsParents: (
        "test_law_3_entries_name_their_parent",
        "test_law_3_entries_after_a_snapshot_name_their_parents",
    ),
    RemembersSteps: ("test_law_1_steps_before_a_transition_are_done_with",),
    SignsForOthers: ("test_law_3_entries_name_their_writer",),
    TakesWhatItPeeksAt: ("test_peeking_shows_what_a_claim_would",),
    LatestThatAcceptsStaleStates: ("test_law_3_stale_claim_cannot_snapshot",),
    LatestThatKeepsOldSteps: ("test_law_1_steps_before_a_transition_are_done_with",),
    AppendsOneByOne: (
        "test_law_2_cancelled_append_is_stored_whole_or_not_at_all",
        "test_law_2_readers_see_an_append_whole",
        "test_law_2_concurrent_appends_lose_nothing",
    ),
    RefusesInTheMiddle: ("test_law_2_append_that_fails_stores_nothing",),
    OverwritesWhatOthersAppend: ("test_law_2_concurrent_appends_lose_nothing",),
    ReusesTokens: ("test_law_3_tokens_are_never_used_twice",),
    NeverBusy: (
        "test_law_3_held_thread_is_busy_and_names_its_holder",
        "test_law_3_refused_claim_leaves_the_holder_alone",
    ),
    HidesTheHolder: (
        "test_law_3_held_thread_is_busy_and_names_its_holder",
        "test_held_thread_cannot_be_deleted",
    ),
    FencesBeforeItRefuses: ("test_law_3_refused_claim_leaves_the_holder_alone",),
    ClaimsInTwoSteps: ("test_law_3_one_of_many_claims_wins",),
    NeverReleases: ("test_law_3_released_thread_can_be_claimed",),
    AcceptsStaleWriters: (
        "test_law_3_stale_claim_cannot_append",
        "test_law_3_stale_claim_cannot_snapshot",
        "test_law_3_live_claim_is_renewed_and_a_stale_one_is_not",
        "test_law_3_stale_release_leaves_the_thread_with_its_holder",
    ),
    LetsReleasedWritersGoOn: ("test_law_3_released_claim_is_over",),
    FencesByTheNumberOfEntries: ("test_law_3_claim_fences_even_when_it_wrote_nothing",),
    SnapshotsOffByOne: ("test_law_1_snapshot_is_a_cache_of_the_fold",),
    MixesSnapshots: ("test_law_1_older_snapshot_changes_nothing",),
    PrunesBeforeASnapshot: ("test_law_3_entries_after_a_snapshot_name_their_parents",),
    ReadsOnlyWhatIsFree: ("test_reading_needs_no_claim", "test_reading_an_unknown_thread_gives_nothing"),
    ReadsFromTheNumberOn: ("test_reading_starts_after_a_number",),
    AlwaysReady: (
        "test_law_8_thread_is_ready_when_its_time_has_come",
        "test_law_8_thread_without_a_time_is_never_ready",
        "test_law_8_held_thread_is_not_ready",
    ),
    ComparesTimesAsText: (
        "test_law_8_ready_compares_moments_not_their_spelling",
        "test_law_8_held_thread_is_not_ready",
    ),
    RemembersOldTimes: ("test_law_8_thread_without_a_time_is_never_ready",),
    FoldsCase: ("test_any_text_names_a_thread",),
    SharesOneJournal: ("test_threads_are_independent",),
    ListsOldestFirst: ("test_threads_are_listed_newest_first",),
    ListsAllAsEnded: (
        "test_listing_shows_how_each_thread_is",
        "test_pruning_leaves_what_is_open_or_at_work",
        "test_pruning_leaves_what_an_open_run_began",
    ),
    ForgetsAgents: ("test_listing_names_the_agent",),
    TakesForksForCrashed: ("test_plain_fork_of_an_open_run_has_not_crashed",),
    ForgetsOrigins: (
        "test_fork_names_the_thread_whose_entries_it_shares",
        "test_pruning_leaves_what_a_fork_shares",
    ),
    DeletesWhatWentOn: ("test_thread_that_went_on_is_not_deleted",),
    ForgetsTitles: ("test_listing_shows_what_a_thread_is_about",),
    SelectsEverything: ("test_query_selects_by_status_and_metadata", "test_query_selects_by_age"),
    IgnoresLimits: ("test_pages_together_are_the_listing",),
    DeletesOnlyEntries: ("test_deleted_thread_is_gone",),
}
