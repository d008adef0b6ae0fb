"""Law 10: what was acknowledged is stored, and what was offered is offered until it is taken.

Acknowledging first, and writing or working then, loses what a crash comes between.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from locus import Agent, Hook, TerminateEvent
from locus.core.errors import DeadLetter, NothingToResume
from locus.core.journal import Paused, Resumed
from locus.journal import JournalHost, JournalStore
from locus_testkit.contracts._runs import Case, Crash, Process, Talk, World, crash_each_write
from locus_testkit.contracts._samples import NOON, bodies_of, fold_claim, steps_since, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, tell
from locus_testkit.contracts.features import needs
from locus_testkit.crashes import is_crash
from locus_testkit.scripted_model import ScriptedModel, call

__all__ = ["AckLaws"]


class AckLaws(StoreContract):
    """An answer of the store is the last thing that it does."""

    async def test_law_10_acknowledged_entries_are_there_at_once(self, open_store: OpenStore) -> None:
        """After each acknowledgement every handle reads the entry, while its writer is still at work."""
        here, there = await self.handles(open_store)
        claim, told = await here.claim("t", "w"), story(size=2)
        await tell(here, claim, told)
        for n in range(1, 4):
            await add(here, claim, *texts(1, f"run-{n}"))
            for store in (here, there):
                held = await store.peek("t")
                assert held is not None
                assert (held.head, fold_claim(held)) == (2 + n, told.end)
                assert steps_since(held) == [body for i in range(1, n + 1) for body in texts(1, f"run-{i}")]
                if self.features.history:
                    assert bodies_of(await store.read("t", 1 + n)) == list(texts(1, f"run-{n}"))

    @needs("history")
    async def test_law_10_acknowledged_entries_outlive_their_worker(self, open_store: OpenStore) -> None:
        """Whatever a process got to know as stored is what the next one finds, in order."""
        place = await self.place(open_store)

        def make(thread_id: str) -> Case:
            talk, world = Talk([call("act", n=1), call("act", n=2)], "done"), World()
            tools = [world.effect("act", "pure")]

            def agent(store: JournalStore) -> Agent[object, object]:
                return Agent(talk.model, tools=tools, checkpointer=store, tool_execution="sequential")

            return Case(place, thread_id, agent)

        for case in await crash_each_write(make):
            bodies = bodies_of(await place.stores[1].read(case.thread_id))
            wanted = [body for one in case.processes for body in one.arrived]
            assert bodies == wanted, case.dead_process.crash
            assert wanted[: len(case.dead_process.acknowledged)] == case.dead_process.acknowledged

    @needs("leases")
    async def test_law_10_end_that_nobody_heard_of_is_emitted(self, open_store: OpenStore) -> None:
        """A process died between the last append and the event about it: the next claim of the thread emits it."""
        here, there = await self.handles(open_store)
        heard: list[TerminateEvent] = []

        class Hears(Hook):
            def on_terminate(self, event: TerminateEvent) -> None:
                heard.append(event)

        def agent(store: JournalStore) -> Agent[object, object]:
            return Agent(ScriptedModel("done", "more"), checkpointer=store, hooks=[Hears()])

        for at in range(1, 10):
            thread_id, process = f"t{at}", Process(here, Crash(at, stored=True))
            with pytest.raises(BaseException) as died:  # noqa: PT011  a crash is not an Exception
                await agent(process).run("Do it.", thread_id=thread_id)
            assert is_crash(died.value)
            await self.abandon(here, process.claims[-1])
            held = await there.peek(thread_id)
            assert held is not None
            if JournalHost(there, held).open_node is None:
                break
        assert heard == []
        result = await agent(there).resume(thread_id)
        assert (result.text, result.stop_reason) == ("done", "NoToolCalls")
        assert [(e.reason, e.final_message, e.run_id, e.replayed) for e in heard] == [
            ("NoToolCalls", "done", result.run_id, True)
        ]
        with pytest.raises(NothingToResume):
            await agent(there).resume(thread_id)
        assert len(heard) == 1

    @needs("history")
    async def test_law_10_attempts_are_counted_in_the_journal(self, open_store: OpenStore) -> None:
        """What kills its worker each time is found by counting: each attempt has left an entry."""
        place = await self.place(open_store)
        talk, world = Talk(call("act", n=1), "done"), World()
        tools = [world.effect("act", "pure")]
        case = Case(place, "t", lambda store: Agent(talk.model, tools=tools, checkpointer=store))
        await case.run(Crash(3, stored=False), *[Crash(2, stored=False)] * 5)
        bodies = bodies_of(await place.stores[0].read("t"))
        assert [body.segment for body in bodies if isinstance(body, Resumed)] == [1, 2, 3, 4, 5, 6]

    @needs("history")
    async def test_law_10_run_that_kills_its_workers_is_set_aside(self, open_store: OpenStore) -> None:
        """After so many attempts at one place a worker leaves the cause in the journal, and no other is offered it."""
        place = await self.place(open_store)
        talk, world = Talk(call("act", n=1), "done"), World()
        tools = [world.effect("act", "pure")]
        case = Case(place, "t", lambda store: Agent(talk.model, tools=tools, checkpointer=store))
        for crash in (Crash(3, stored=False), *[Crash(2, stored=False)] * 2):
            await case.segment(crash)
        store = place.stores[len(case.processes) % 2]
        await store.release(await store.claim("t", "an engine"), NOON)
        agent = Agent(talk.model, tools=tools, checkpointer=store)
        cause = "3 attempts in a row broke off in execute of iteration 1, calling act"
        for _ in range(2):
            with pytest.raises(DeadLetter, match=cause):
                await agent.resume("t", max_attempts=3)
            assert await store.next_ready(NOON) is None
        last = bodies_of(await store.read("t"))[-1]
        assert isinstance(last, Paused)
        assert (last.kind, last.reason.startswith(cause)) == ("dead_letter", True)
        assert (await agent.resume("t")).text.endswith("done")

    async def test_law_10_thread_is_offered_until_it_is_taken(self, store: JournalStore) -> None:
        """A thread that is offered is not yet taken: the worker may die before it claims it."""
        await store.release(await store.claim("t", "w"), NOON)
        for minutes in range(3):
            assert await store.next_ready(NOON + timedelta(minutes=minutes)) == "t"

    @needs("leases", "lists")
    async def test_law_10_thread_of_a_dead_worker_is_offered_again(self, open_store: OpenStore) -> None:
        """A claimed thread keeps its due time until it is released."""
        here, there = await self.handles(open_store)
        await here.release(await here.claim("t", "w"), NOON)
        dead = await here.claim("t", "dead")
        assert await there.next_ready(NOON) is None
        await self.expire(here, dead)
        assert await there.next_ready(NOON) == "t"
        await there.release(await there.claim("t", "next"))
        assert await there.next_ready(NOON) is None
