"""Law 9: bounds live in the fold. What was counted stays counted, and once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from attrs import evolve

from locus import Agent
from locus.core.messages import Role
from locus.core.state import AgentState
from locus.journal import JournalStore
from locus.loop.router import ReflectPolicy
from locus.plugin import hookimpl
from locus_testkit.contracts._runs import Case, Crash, Place, Talk, World, crash_each_write
from locus_testkit.contracts._samples import NOON, bodies_of, fold_claim, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, claim_and_release, tell
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import call

__all__ = ["BoundLaws"]


class _Reflecting:
    """Reflects on every iteration without a word: a node whose transition counts and says nothing."""

    @hookimpl
    def locus_register_reflect_policies(self) -> Iterable[ReflectPolicy]:
        return [lambda state: "every iteration"]

    @hookimpl
    def locus_reflect(self, state: AgentState) -> AgentState | None:
        return None


class BoundLaws(StoreContract):
    """A replay or a duplicate cannot miscount, because the store neither swallows nor repeats what counts."""

    async def test_law_9_transition_that_only_counts_is_kept(self, store: JournalStore) -> None:
        """No message, no call: an iteration, some seconds and a revision are reason enough to write."""
        told = story(size=2)
        for n in range(1, 4):
            counted = told.end.commit(
                updated_at=NOON + timedelta(minutes=n), active_seconds=told.end.active_seconds + 1, iteration=n
            )
            told = told.grow(evolve(counted, revisions=n))
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await store.release(claim)
        again = await claim_and_release(store, "t")
        assert again.head == 5
        assert (fold_claim(again).iteration, fold_claim(again).revisions) == (3, 3)
        assert fold_claim(again) == told.end

    @needs("history")
    async def test_law_9_equal_entries_count_each(self, store: JournalStore) -> None:
        """Two appends of equal entries are two: a store does not guess which of them was a redelivery."""
        claim = await store.claim("t", "w")
        for _ in range(3):
            await add(store, claim, *texts(2))
        await store.release(claim)
        assert bodies_of(await store.read("t")) == [*texts(2)] * 3

    async def test_law_9_iterations_are_counted_over_crashes(self, open_store: OpenStore) -> None:
        """A run of three iterations has three, wherever it dies: when it thinks, acts or reflects."""
        place = await self.place(open_store)
        wanted = await _case(place, "plain", Talk(call("act", n=1))).run()
        assert wanted.iteration == 3
        assert wanted.total_tokens_used == 45
        talks: dict[str, Talk] = {}

        def make(thread_id: str) -> Case:
            talks[thread_id] = Talk(call("act", n=1))
            return _case(place, thread_id, talks[thread_id])

        cases = await crash_each_write(make)
        assert len(cases) >= 20
        for case in cases:
            got = await case.state()
            where = case.dead_process.crash
            assert (got.iteration, got.usage) == (wanted.iteration, wanted.usage), where
            assert sum(m.role is Role.ASSISTANT for m in got.messages) == 3, where
            assert sum(talks[case.thread_id].asked.values()) <= 4, where

    async def test_law_9_run_that_keeps_dying_still_ends_at_its_bound(self, open_store: OpenStore) -> None:
        """Thirty processes that die one after the other, in their second to sixth write, add nothing to the count."""
        place = await self.place(open_store)
        for at in range(2, 7):
            case = _case(place, f"every-{at}", Talk(call("act", n=1)))
            got = await case.run(*[Crash(at, stored=at % 2 == 0)] * 30)
            assert case.crashes >= 2
            assert (got.iteration, got.total_tokens_used) == (3, 45)
            assert sum(m.role is Role.ASSISTANT for m in got.messages) == 3


def _case(place: Place, thread_id: str, talk: Talk) -> Case:
    """A run that would go on for ever, bound to three iterations, with a reflection after each."""
    tools = [World().effect("act", "pure")]

    def agent(store: JournalStore) -> Agent[object, object]:
        return Agent(talk.model, tools=tools, checkpointer=store, max_iterations=3, hooks=[_Reflecting()])

    return Case(place, thread_id, agent)
