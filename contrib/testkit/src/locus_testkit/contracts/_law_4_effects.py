"""Law 4: effects happen at least once with a key, or at most once with a confession.

The kernel decides what may happen again, by what the store kept: an intent that is lost repeats what may happen once,
an outcome that is lost repeats what was finished. Each run here dies at each of its writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from locus import Agent
from locus.core.journal import Answered, Asked
from locus.journal import JournalStore
from locus.tools import tool
from locus_testkit.contracts._runs import (
    UNKNOWN,
    Case,
    Context,
    Effect,
    Place,
    Talk,
    World,
    crash_each_write,
    results_by_tool,
)
from locus_testkit.contracts._store import OpenStore, StoreContract
from locus_testkit.scripted_model import call

__all__ = ["EffectLaws"]


class EffectLaws(StoreContract):
    """What happens outside is remembered as far as it can be known."""

    async def test_law_4_pure_effect_happens_again(self, open_store: OpenStore) -> None:
        """It needs no intent: it is entered again unless its outcome was stored."""
        runs = await _crash_each_write(await self.place(open_store), ["pure"])
        assert {world.entered["pure"] for _, world in runs} == {1, 2}

    async def test_law_4_keyed_effect_happens_again_under_its_key(self, open_store: OpenStore) -> None:
        """The service behind it is given the same key, so that it can recognise the second attempt."""
        runs = await _crash_each_write(await self.place(open_store), ["keyed"])
        assert {world.entered["keyed"] for _, world in runs} == {1, 2}

    async def test_law_4_effect_that_happens_once_is_confessed(self, open_store: OpenStore) -> None:
        """Between intent and outcome the effect is uncertain: it is not run again, and the model reads so."""
        runs = await _crash_each_write(await self.place(open_store), ["once"])
        unknown = [results_by_tool(await case.state())["once"].startswith(UNKNOWN) for case, _ in runs]
        assert sorted({world.entered["once"] for _, world in runs}) == [0, 1]
        assert unknown.count(True) == 2, "when its intent was stored, and when its outcome was not"

    async def test_law_4_parallel_effects_are_recorded_each_by_itself(self, open_store: OpenStore) -> None:
        """Of the calls of one turn, those that had finished stay finished."""
        runs = await _crash_each_write(await self.place(open_store), ["once", "keyed", "pure"])
        assert len(runs) >= 16

    async def test_law_4_person_is_asked_once(self, open_store: OpenStore) -> None:
        """A question that was stored is not asked again, and neither is a person whose answer was stored."""
        place = await self.place(open_store)

        def make(thread_id: str) -> Case:
            talk = Talk(call("confirm", what="paying"), "done")

            @tool(effect="pure")
            async def confirm(what: str, ctx: Context) -> str:
                """Ask a person."""
                return f"a person said: {ctx.interrupt(what)}"

            return Case(place, thread_id, lambda store: Agent(talk.model, tools=[confirm], checkpointer=store))

        cases = [*await crash_each_write(make), *await crash_each_write(make, after=1)]
        for case in cases:
            assert results_by_tool(await case.state())["confirm"] == "a person said: yes, paying", (
                case.dead_process.crash
            )
            for kind in (Asked, Answered):
                given = [body for one in case.processes for body in one.arrived if isinstance(body, kind)]
                assert len(given) == 1, case.dead_process.crash
        for kind in (Asked, Answered):
            assert any(isinstance(body, kind) for case in cases for body in case.dead_process.arrived), (
                "no crash came after it"
            )


async def _crash_each_write(place: Place, effects: Sequence[Effect]) -> list[tuple[Case, World]]:
    """Runs that call a tool of each effect in one turn, and die at each write; each keeps the law.

    What is called alone is followed by another call: the outcome of a turn's last one is written with the transition.
    """
    alone = len(effects) == 1
    worlds: dict[str, World] = {}

    def make(thread_id: str) -> Case:
        calls = [call(name, n=1) for name in (*effects, *(("after",) if alone else ()))]
        talk, world = Talk(calls, "done"), World(() if alone else effects)
        worlds[thread_id] = world

        def agent(store: JournalStore) -> Agent[object, object]:
            tools = [*(world.effect(each, each) for each in effects), world.effect("after", "pure")]
            order: Literal["sequential", "concurrent"] = "sequential" if alone else "concurrent"
            return Agent(talk.model, tools=tools, checkpointer=store, tool_execution=order)

        return Case(place, thread_id, agent, between=world.part)

    cases = await crash_each_write(make)
    for case in cases:
        state = await case.state()
        for ordinal, effect in enumerate(effects):
            _check(case, worlds[case.thread_id], effect, f"0/execute/{ordinal}", results_by_tool(state)[effect])
    return [(case, worlds[case.thread_id]) for case in cases]


def _check(case: Case, world: World, effect: Effect, step_id: str, told: str) -> None:
    """One call in one run: how often it happened, under which key, and what the model read of it."""
    where, entered = case.dead_process.crash, world.entered[effect]
    intended, settled = case.dead_process.has_intent(step_id), case.dead_process.has_outcome(step_id)
    unknown = told.startswith(UNKNOWN)
    if not case.dead_process.in_doubt(step_id):
        assert unknown is (effect == "once" and intended and not settled), where
    assert told == f"{effect} is done" or (unknown and effect == "once"), where
    assert len(world.keys.get(effect, ())) == (1 if entered else 0), where
    if settled:
        assert entered == 1, f"finished, and done again after {where}"
    elif effect == "once":
        assert entered <= 1, f"done twice after {where}"
    else:
        assert 1 <= entered <= 2, where
