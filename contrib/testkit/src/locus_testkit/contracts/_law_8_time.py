"""Law 8: times are recorded. When a run began, how long it was at work, and when it wants to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from attrs import evolve

from locus import Agent
from locus.core.messages import Message, Role
from locus.core.termination import TimeLimit
from locus.journal import JournalStore
from locus.tools import tool
from locus_testkit.clock import FakeClock
from locus_testkit.contracts._runs import Case, Talk, crash_each_write
from locus_testkit.contracts._samples import NOON, fold_claim, last_transition, story
from locus_testkit.contracts._store import OpenStore, StoreContract, claim_and_release, tell
from locus_testkit.scripted_model import call

__all__ = ["TimeLaws"]

#: The end of time.
_NEVER = datetime.max.replace(tzinfo=UTC)


class TimeLaws(StoreContract):
    """A time comes back as it was given, and only threads that wait for it are offered."""

    async def test_law_8_thread_is_ready_when_its_time_has_come(self, store: JournalStore) -> None:
        """A thread that was released with a time is offered from that time on, and not before."""
        await store.release(await store.claim("t", "w"), NOON)
        assert await store.next_ready(NOON - timedelta(seconds=1)) is None
        assert await store.next_ready(NOON) == "t"
        await store.release(await store.claim("t", "w"), NOON)
        assert await store.next_ready(NOON + timedelta(days=1)) == "t"

    async def test_law_8_ready_compares_moments_not_their_spelling(self, store: JournalStore) -> None:
        """Time zones and fractions of a second do not change which moment is earlier."""
        east = datetime.fromisoformat("2030-01-01T14:00:00.500000+02:00")
        await store.release(await store.claim("t", "w"), east)
        assert await store.next_ready(NOON) is None
        assert await store.next_ready(NOON + timedelta(seconds=1)) == "t"

    async def test_law_8_thread_without_a_time_is_never_ready(self, store: JournalStore) -> None:
        """A thread that waits to be resumed is not offered; giving it back without a time takes it out."""
        await store.release(await store.claim("t", "w"))
        assert await store.next_ready(datetime.max.replace(tzinfo=UTC)) is None
        await store.release(await store.claim("t", "w"), NOON)
        await store.release(await store.claim("t", "w"))
        assert await store.next_ready(datetime.max.replace(tzinfo=UTC)) is None

    async def test_law_8_held_thread_is_not_ready(self, store: JournalStore) -> None:
        """A thread that a worker holds is not offered, however late it is."""
        for thread in ("a", "b"):
            await store.release(await store.claim(thread, "w"), NOON)
        await store.claim("a", "w")
        assert await store.next_ready(NOON) == "b"
        await store.claim("b", "w")
        assert await store.next_ready(NOON) is None

    async def test_law_8_times_come_back_to_the_microsecond(self, store: JournalStore) -> None:
        """The moments of a state and of a transition are neither rounded nor moved to another zone."""
        exact = datetime(2030, 6, 1, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=-9, minutes=-30)))
        told = story(size=1)
        state = evolve(
            told.end.with_message(Message(Role.USER, "later")),
            started_at=exact,
            updated_at=exact + timedelta(microseconds=1),
            active_seconds=0.1 + 0.2,
        )
        told = told.grow(state, not_before=exact)
        claim = await store.claim("t", "w")
        await tell(store, claim, told)
        await store.release(claim)
        again = await claim_and_release(store, "t")
        assert fold_claim(again) == told.end
        found = last_transition(again)
        assert found is not None
        assert found.not_before == exact

    async def test_law_8_downtime_counts_for_no_limit(self, open_store: OpenStore) -> None:
        """A run that was down for a day began when it began, and has worked as long as it has worked."""
        place = await self.place(open_store)

        def make(thread_id: str) -> Case:
            clock, talk = FakeClock(), Talk(*[call("work", n=n) for n in range(9)])

            @tool(effect="pure")
            async def work(n: int) -> str:
                """Take 40 seconds."""
                clock.advance(40)
                return "worked"

            def agent(store: JournalStore) -> Agent[object, object]:
                limit = TimeLimit(100)
                return Agent(talk.model, tools=[work], checkpointer=store, clock=clock, termination=limit)

            return Case(place, thread_id, agent, between=lambda: clock.advance(86_400))

        wanted = await make("plain").run()
        assert wanted.active_seconds == 120
        for case in await crash_each_write(make):
            got = await case.state()
            begun = len(case.dead_process.arrived) > 0
            late = timedelta(0) if begun else timedelta(days=1)
            assert got.started_at == wanted.started_at + late, case.dead_process.crash
            assert got.active_seconds == wanted.active_seconds, case.dead_process.crash
            # What a worker did after its last transition is lost as work, and can be one iteration.
            assert got.iteration - wanted.iteration in (0, 1), case.dead_process.crash
