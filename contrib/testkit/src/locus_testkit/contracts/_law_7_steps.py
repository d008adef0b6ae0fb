"""Law 7: steps are found by their stable ids, and a program that asks for another step is stopped for good."""

from __future__ import annotations

from collections import Counter

import pytest

from locus import Agent
from locus.core.errors import StepMismatch
from locus.core.journal import Intent, Outcome, StepId
from locus.journal import Appended, JournalStore
from locus.tools import tool
from locus_testkit.contracts._runs import Case, Context, Crash, Talk, World, crash_each_write, results_by_tool
from locus_testkit.contracts._store import OpenStore, StoreContract
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import call

__all__ = ["StepLaws"]

#: Names that a column folds, trims, cuts or splits.
_NAMES = ("Pay", "pay", "pay ", "p\u00e4y", "pa\u0308y", "a/b", "a#1", "x" * 300, "x" * 301)


class StepLaws(StoreContract):
    """Ids and digests come back as they were written: a step is found by nothing else."""

    async def test_law_7_every_step_is_found_by_its_own_name(self, open_store: OpenStore) -> None:
        """Steps whose names differ by a letter are different steps: none that was stored happens again."""
        place = await self.place(open_store)
        marks: dict[str, Counter[str]] = {}

        def make(thread_id: str) -> Case:
            talk, entered = Talk(call("act", n=1), "done"), Counter[str]()
            marks[thread_id] = entered

            @tool(effect="pure")
            async def act(n: int, ctx: Context) -> str:
                """Make many steps."""
                return "|".join([await ctx.step(name, _Step(name, entered), effect="pure") for name in _NAMES])

            return Case(place, thread_id, lambda store: Agent(talk.model, tools=[act], checkpointer=store))

        for case in await crash_each_write(make):
            for name in _NAMES:
                stored = case.dead_process.has_outcome(f"0/execute/0/step/0:{name}")
                assert marks[case.thread_id][name] in ((1,) if stored else (1, 2)), (case.dead_process.crash, name)
            assert results_by_tool(await case.state())["act"] == "|".join(f"did {name}" for name in _NAMES)

    @needs("history")
    async def test_law_7_ids_are_pinned(self, open_store: OpenStore) -> None:
        """Iteration, node and ordinal name a step; a journal of today is found by the kernel of tomorrow."""
        (store, _), world = (await self.place(open_store)).stores, World()
        talk = Talk([call("keyed", n=1), call("once", n=1)], call("pure", n=1), "done")
        tools = [world.effect("keyed", "keyed"), world.effect("once", "once"), world.effect("pure", "pure")]
        agent: Agent[object, object] = Agent(talk.model, tools=tools, checkpointer=store, tool_execution="sequential")
        await agent.run("Do it.", thread_id="t")
        bodies = [entry.body for entry in await store.read("t")]
        assert [(type(b).__name__, str(b.step_id)) for b in bodies if isinstance(b, Intent | Outcome)] == [
            ("Outcome", "0/think/0"),
            ("Intent", "0/execute/0"),
            ("Outcome", "0/execute/0"),
            ("Intent", "0/execute/1"),
            ("Outcome", "0/execute/1"),
            ("Outcome", "1/think/0"),
            ("Outcome", "1/execute/0"),
            ("Outcome", "2/think/0"),
        ]

    async def test_law_7_changed_program_is_stopped_for_good(self, open_store: OpenStore) -> None:
        """Another step in the place of a recorded one: the same typed error each time, and no effect."""
        place = await self.place(open_store)
        talk, world = Talk([call("act", n=1), call("act", n=2)], "done"), World()

        def agent(store: JournalStore) -> Agent[object, object]:
            return Agent(talk.model, tools=[world.effect("act", "pure")], checkpointer=store)

        case = Case(place, "t", agent)
        await case.segment(Crash(5, stored=False))
        assert case.dead_process.has_outcome("0/execute/0")
        # A handle may remember its own claim, so another one asks first.
        for store in reversed(place.stores):
            claim = await store.claim("t", "another program")
            run_id = (await store.read("t"))[0].body.run_id
            other = Outcome(run_id=run_id, step_id=StepId(0, "execute", 1), digest="of another call")
            assert await store.append(claim, [other]) is Appended.OK
            await store.release(claim)
            with pytest.raises(StepMismatch):
                await agent(store).resume("t")
        assert world.entered == {"act": 2}, "something was begun nevertheless"

    async def test_law_7_added_parameter_is_the_same_step(self, open_store: OpenStore) -> None:
        """A step is known by the arguments as the model gave them: what has a default now does not change it."""
        place = await self.place(open_store)
        talk, world = Talk([call("act", n=1), call("act", n=2)], "done"), World()

        @tool(name="act", effect="pure")
        async def changed(n: int, ctx: Context, unit: str = "m") -> str:
            """Have another effect."""
            world.enter("changed", ctx)
            return "changed"

        def agent(store: JournalStore) -> Agent[object, object]:
            return Agent(talk.model, tools=[world.effect("act", "pure")], checkpointer=store)

        case = Case(place, "t", agent)
        await case.segment(Crash(5, stored=False))
        assert case.dead_process.has_outcome("0/execute/0")
        # A handle may remember its own claim, so another one asks.
        result = await Agent(talk.model, tools=[changed], checkpointer=place.stores[1]).resume("t")
        assert result.text.endswith("done")
        assert world.entered == {"act": 2}, "what was recorded was done again"


class _Step:
    """An effect that says its name."""

    def __init__(self, name: str, entered: Counter[str]) -> None:
        self._name, self._entered = name, entered

    async def __call__(self) -> str:
        self._entered[self._name] += 1
        return f"did {self._name}"
