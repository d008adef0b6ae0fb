"""Stores that a run notices, or that handle leases and forks badly, each in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import anyio.lowlevel
from attrs import evolve

from locus.core.errors import ThreadBusy
from locus.core.journal import (
    BLANK,
    Answered,
    Body,
    Entry,
    Intent,
    Outcome,
    Resumed,
    StateDelta,
    StepId,
    Transition,
    delta,
    fold,
)
from locus.core.state import AgentState
from locus.journal import Appended, Claim
from locus.models.call import ModelCallResult
from locus.tools.outcome import CallOutcome

from .stores import Complete

__all__ = ["BROKEN"]


class Loses(Complete):
    """Says that it has what it throws away."""

    def loses(self, body: Body) -> bool:
        raise NotImplementedError

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [body for body in bodies if not self.loses(body)])


class LosesIntents(Loses):
    def loses(self, body: Body) -> bool:
        return isinstance(body, Intent)


class LosesOutcomes(Loses):
    def loses(self, body: Body) -> bool:
        return isinstance(body, Outcome) and isinstance(body.value, CallOutcome)


class LosesModelAnswers(Loses):
    def loses(self, body: Body) -> bool:
        return isinstance(body, Outcome) and isinstance(body.value, ModelCallResult)


class LosesAnswers(Loses):
    def loses(self, body: Body) -> bool:
        return isinstance(body, Answered)


class LosesAttempts(Loses):
    def loses(self, body: Body) -> bool:
        return isinstance(body, Resumed)


class SkipsWhatSaysNothing(Loses):
    def loses(self, body: Body) -> bool:
        return isinstance(body, Transition) and body.next_node == "think" and not body.delta.grown


class SwallowsRepeats(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        kept = self._threads[claim.thread_id].bodies
        if kept[-len(bodies) :] == list(bodies):
            return Appended.OK  # "redelivered"
        return await super().append(claim, bodies)


class RepeatsAnEntry(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [*bodies, bodies[-1]])


class SortsByStep(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, entries=tuple(sorted(claim.entries, key=lambda e: str(getattr(e.body, "step_id", "")))))

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        entries = await super().read(thread_id, after)
        return tuple(sorted(entries, key=lambda e: str(getattr(e.body, "step_id", ""))))


class ReadsOnePage(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return (await super().read(thread_id, after))[:100]


class ShowsAnOlderState(Complete):
    async def peek(self, thread_id: str) -> Claim | None:
        claim = await super().peek(thread_id)
        return None if claim is None else evolve(claim, entries=claim.entries[:-1])


class SnapshotsTheStateBefore(Complete):
    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        before = fold(BLANK, self._threads[claim.thread_id].bodies[: at - 1])
        return await super().snapshot(claim, at, before, last)


class StoresHalfABatch(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        half = len(bodies) // 2
        if half:
            await super().append(claim, bodies[:half])
        await anyio.lowlevel.checkpoint()
        return await super().append(claim, bodies[half:])


class FreesBeforeItSaysWhen(Complete):
    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        held = self.holder(claim.thread_id) == claim.token
        await super().release(claim)
        await anyio.lowlevel.checkpoint()
        if held:
            self._threads[claim.thread_id].not_before = not_before


class FencesNobody(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        if await super().append(claim, bodies) is Appended.FENCED:
            self._threads[claim.thread_id].bodies.extend(bodies)
        return Appended.OK


class WritesWhenGivenBack(Complete):
    """Nothing is stored until the worker is done."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, list[Body]] = {}

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        if self.holder(claim.thread_id) != claim.token:
            return Appended.FENCED
        self.kept.setdefault(claim.token, []).extend(bodies)
        return Appended.OK

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        await super().append(claim, self.kept.pop(claim.token, []))
        await super().release(claim, not_before)


class HoldsForEver(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        self.lapsed.clear()
        return await super().claim(thread_id, worker)


class FencesByTheClock(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return Appended.FENCED if claim.token in self.lapsed else await super().append(claim, bodies)


class IgnoresRenewals(Complete):
    async def renew(self, claim: Claim) -> bool:
        lapsed = set(self.lapsed)
        alive = await super().renew(claim)
        self.lapsed |= lapsed
        return alive


class TakesTheTimeWithTheThread(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        self._threads[thread_id].not_before = None
        return claim


class ForgetsTimes(Complete):
    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        await super().release(claim)


class OffersOnce(Complete):
    async def next_ready(self, now: datetime) -> str | None:
        found = await super().next_ready(now)
        if found is not None:
            self._threads[found].not_before = None
        return found


class RoundsTimes(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [self._round(body) for body in bodies])

    def _round(self, body: Body) -> Body:
        if not isinstance(body, Transition):
            return body
        changed = {k: v.replace(microsecond=0) if isinstance(v, datetime) else v for k, v in body.delta.changed.items()}
        return evolve(body, delta=StateDelta(changed, body.delta.grown))


class ForgetsTheWorkDone(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [self._idle(body) for body in bodies])

    def _idle(self, body: Body) -> Body:
        if not isinstance(body, Transition):
            return body
        changed = {k: v for k, v in body.delta.changed.items() if k != "active_seconds"}
        return evolve(body, delta=StateDelta(changed, body.delta.grown))


class CutsLongResults(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [self._cut(body) for body in bodies])

    def _cut(self, body: Body) -> Body:
        if isinstance(body, Outcome) and isinstance(body.value, CallOutcome) and isinstance(body.value.content, str):
            return evolve(body, value=evolve(body.value, content=body.value.content[:262_144]))
        return body


class LosesBlobs(Complete):
    """Large texts are kept once for all threads, and go with the first thread that is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        thread = self._threads.get(thread_id)
        self.gone |= {text for body in (thread.bodies if thread else ()) if (text := _large_text(body))}
        return await super().delete(thread_id, head=head)

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return tuple(evolve(e, body=self._find(e.body)) for e in await super().read(thread_id, after))

    def _find(self, body: Body) -> Body:
        return evolve(body, value=None) if isinstance(body, Outcome) and _large_text(body) in self.gone else body


def _large_text(body: Body) -> str:
    text = body.value if isinstance(body, Outcome) else ""
    return text if isinstance(text, str) and len(text) > 262_144 else ""


class StoresWholeStates(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        state, whole = fold(BLANK, self._threads[claim.thread_id].bodies), []
        for body in bodies:
            if isinstance(body, Transition):
                after = fold(state, [body])
                # All that there was goes, and all that there is comes.
                grown = {name: (0, items) for name, (_, items) in delta(BLANK, after).grown.items()}
                body, state = evolve(body, delta=StateDelta(body.delta.changed, grown)), after
            whole.append(body)
        return await super().append(claim, whole)


class FoldsCaseOfSteps(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, entries=tuple(evolve(e, body=self._fold(e.body)) for e in claim.entries))

    def _fold(self, body: Body) -> Body:
        if not isinstance(body, Intent | Outcome):
            return body
        return evolve(body, step_id=evolve(body.step_id, name=body.step_id.name.casefold()))


class NamesStepsItself(Complete):
    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        return tuple(evolve(e, body=self._name(e)) for e in await super().read(thread_id, after))

    def _name(self, entry: Entry) -> Body:
        body = entry.body
        return evolve(body, step_id=StepId(0, "step", entry.n)) if isinstance(body, Intent | Outcome) else body


class DropsLoneOutcomes(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        if len(bodies) == 1 and isinstance(bodies[0], Outcome):
            return Appended.OK
        return await super().append(claim, bodies)


class ForgetsDigests(Complete):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [self._bare(body) for body in bodies])

    def _bare(self, body: Body) -> Body:
        return evolve(body, digest="") if isinstance(body, Intent | Outcome) else body


class ShowsTheLastWriteLate(Complete):
    async def peek(self, thread_id: str) -> Claim | None:
        claim = await super().peek(thread_id)
        if claim is None or not self.holder(thread_id):
            return claim
        return evolve(claim, head=claim.head - 1, entries=claim.entries[:-1])


# -- forks ----------------------------------------------------------------------------------------


class ForksTheWholeThread(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].bodies = list(self._threads[thread_id].bodies)


class ForksNothing(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        pass


class ForksInTwoWrites(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into)
        await anyio.lowlevel.checkpoint()
        claim = await self.claim(into, "fork")
        await self.append(claim, bodies)
        await self.release(claim)


class ForksForAnotherWriter(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].writers = self._threads[thread_id].writers[:1]


class ForksByReference(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].bodies = self._threads[thread_id].bodies


class ForksTheSnapshot(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].newest = self._threads[thread_id].newest


class ForksTheRoot(Complete):
    def __init__(self) -> None:
        super().__init__()
        self.roots: dict[str, str] = {}

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        self.roots[into] = root = self.roots.get(thread_id, thread_id)
        await super().fork(root, at, into, bodies)


class ForksOnlyWhatIsFree(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        if self.holder(thread_id):
            raise ThreadBusy(thread_id, "somebody")
        await super().fork(thread_id, at, into, bodies)


class ForksTheTime(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self._threads[into].not_before = self._threads[thread_id].not_before


class ForksOverWhatIsThere(Complete):
    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        if into != thread_id:
            self._threads.pop(into, None)
        await super().fork(thread_id, at, into, bodies)


class ForgetsForksToo(Complete):
    def __init__(self) -> None:
        super().__init__()
        self.forks: dict[str, list[str]] = {}

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        await super().fork(thread_id, at, into, bodies)
        self.forks.setdefault(thread_id, []).append(into)

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        for fork in self.forks.pop(thread_id, ()):
            await super().delete(fork)
        return await super().delete(thread_id, head=head)


class SaysThatNobodyDied(Complete):
    async def claim(self, thread_id: str, worker: str) -> Claim:
        return evolve(await super().claim(thread_id, worker), is_abandoned=False)


#: Which tests of the contract each of them must fail.
BROKEN: dict[Callable[[], Any], tuple[str, ...]] = {
    LosesIntents: (
        "test_law_4_effect_that_happens_once_is_confessed",
        "test_law_4_parallel_effects_are_recorded_each_by_itself",
        "test_law_7_ids_are_pinned",
    ),
    LosesOutcomes: (
        "test_law_4_pure_effect_happens_again",
        "test_law_4_keyed_effect_happens_again_under_its_key",
        "test_law_4_parallel_effects_are_recorded_each_by_itself",
        "test_law_10_acknowledged_entries_outlive_their_worker",
    ),
    LosesModelAnswers: (
        "test_law_5_recorded_answer_is_not_asked_for_again",
        "test_law_5_history_says_what_was_recorded",
    ),
    LosesAnswers: ("test_law_4_person_is_asked_once",),
    LosesAttempts: (
        "test_law_10_attempts_are_counted_in_the_journal",
        "test_law_10_run_that_kills_its_workers_is_set_aside",
    ),
    SkipsWhatSaysNothing: (
        "test_law_9_transition_that_only_counts_is_kept",
        "test_law_9_iterations_are_counted_over_crashes",
        "test_law_9_run_that_keeps_dying_still_ends_at_its_bound",
    ),
    SwallowsRepeats: ("test_law_9_equal_entries_count_each",),
    RepeatsAnEntry: (
        "test_law_1_state_is_the_fold_of_the_entries",
        "test_law_1_long_journal_comes_back_in_order",
        "test_law_9_equal_entries_count_each",
        "test_law_10_acknowledged_entries_outlive_their_worker",
    ),
    SortsByStep: (
        "test_law_1_long_journal_comes_back_in_order",
        "test_law_1_every_kind_of_entry_comes_back_equal",
    ),
    ReadsOnePage: ("test_law_1_long_journal_comes_back_in_order",),
    ShowsAnOlderState: ("test_law_1_run_ends_in_the_fold_of_its_journal",),
    SnapshotsTheStateBefore: ("test_law_1_run_continues_from_any_snapshot",),
    StoresHalfABatch: (
        "test_law_2_cancelled_append_is_stored_whole_or_not_at_all",
        "test_law_2_cancelled_transition_is_stored_whole_or_not_at_all",
        "test_law_2_readers_see_an_append_whole",
    ),
    FreesBeforeItSaysWhen: ("test_law_2_thread_is_freed_and_its_time_set_in_one_write",),
    FencesNobody: (
        "test_law_3_run_that_lost_its_thread_is_stopped",
        "test_law_3_stale_claim_cannot_append",
        "test_law_3_released_claim_is_over",
    ),
    HoldsForEver: ("test_law_3_silent_worker_loses_its_thread_to_the_next",),
    FencesByTheClock: ("test_law_3_lease_that_ran_out_fences_no_worker",),
    IgnoresRenewals: ("test_law_3_renewed_lease_keeps_others_out",),
    WritesWhenGivenBack: (
        "test_law_5_crash_repeats_one_model_call_at_most",
        "test_law_10_acknowledged_entries_outlive_their_worker",
        "test_law_10_acknowledged_entries_are_there_at_once",
    ),
    CutsLongResults: ("test_law_6_large_result_survives_a_crash",),
    LosesBlobs: ("test_law_6_equal_large_values_are_kept_apart", "test_fork_outlives_its_origin"),
    StoresWholeStates: ("test_law_6_entry_holds_what_was_added",),
    FoldsCaseOfSteps: ("test_law_7_every_step_is_found_by_its_own_name",),
    NamesStepsItself: ("test_law_7_ids_are_pinned",),
    ForgetsDigests: ("test_law_7_added_parameter_is_the_same_step",),
    DropsLoneOutcomes: ("test_law_7_changed_program_is_stopped_for_good",),
    TakesTheTimeWithTheThread: ("test_law_10_thread_of_a_dead_worker_is_offered_again",),
    ForgetsTimes: ("test_law_8_thread_is_ready_when_its_time_has_come",),
    OffersOnce: ("test_law_10_thread_is_offered_until_it_is_taken",),
    RoundsTimes: ("test_law_8_times_come_back_to_the_microsecond",),
    ForgetsTheWorkDone: ("test_law_8_downtime_counts_for_no_limit",),
    SaysThatNobodyDied: ("test_law_10_end_that_nobody_heard_of_is_emitted",),
    ShowsTheLastWriteLate: ("test_law_10_acknowledged_entries_are_there_at_once",),
    ForksNothing: ("test_thread_is_forked_or_that_is_refused",),
    ForksInTwoWrites: ("test_cancelled_fork_is_whole_or_not_there",),
    ForksForAnotherWriter: ("test_fork_continues_with_what_it_is_given",),
    ForksTheWholeThread: ("test_fork_has_the_first_entries",),
    ForksByReference: ("test_fork_goes_its_own_way",),
    ForksTheSnapshot: ("test_fork_ignores_later_snapshots",),
    ForksTheRoot: ("test_fork_of_a_fork",),
    ForksOnlyWhatIsFree: ("test_thread_at_work_can_be_forked",),
    ForksTheTime: ("test_fork_is_listed_and_waits_for_nothing",),
    ForksOverWhatIsThere: ("test_fork_that_cannot_be_is_refused_and_leaves_no_trace",),
    ForgetsForksToo: ("test_fork_outlives_its_origin",),
}
