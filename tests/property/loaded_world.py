"""An agent with everything that an agent can have, each part doing what was generated for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import field, frozen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.loop.hook_kit import question
from tests.property.loop_world import World, awkward_scripts

from locus import (
    Agent,
    AgentResult,
    AgentState,
    Allow,
    Cancel,
    Event,
    Hook,
    Interrupt,
    Message,
    Reject,
    Retry,
    Revise,
)
from locus.core.errors import BudgetExceeded, ModelError, StepFailed
from locus.core.termination import MaxIterations, TerminationCondition, TimeLimit, TokenLimit, ToolCalled
from locus.journal import JournalStore
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations, OnToolError
from locus_plugin_conversation import SummarizingManager
from locus_testkit import ScriptedModel, Turn

__all__ = ["Load", "Loaded", "loads"]


class TickingClock:
    """Every look at it takes a tenth of a second."""

    def __init__(self) -> None:
        self.looks = 0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        self.looks += 1
        return self.looks / 10


@frozen(kw_only=True)
class Load:
    """What was generated.

    Args:
        scripts: of the model, one a user turn.
        moods: what observers answer, event by event.
        decisions: what the decider says, call by call.
        routes: where the route decider wants to go, transition by transition.
        reviews: whether the reviewer objects, answer by answer.
        spends: whether the spender asks its model, event by event.
        judgments: of the model that hooks and the conversation manager ask.
        attempts: how often the wrapper of the model call calls it, call by call.
        stamps: the node wrapper changes states.
        reflects: when to reflect, and whether the reflection asks a model.
        keeps: how many messages the conversation manager keeps, or None.
        condition: when to stop.
        limits: of single user turns.
        sequential: one call after another.
    """

    scripts: Sequence[list[Turn]]
    moods: Sequence[Any] = ()
    decisions: Sequence[Any] = ()
    routes: Sequence[str | None] = ()
    reviews: Sequence[bool] = ()
    spends: Sequence[bool] = ()
    judgments: Sequence[Turn] = ()
    attempts: Sequence[int] = ()
    stamps: bool = False
    reflects: Any = None
    keeps: int | None = None
    condition: TerminationCondition = field(default=MaxIterations(6))
    limits: Sequence[TerminationCondition | None] = ()
    sequential: bool = False


class Observing(Hook):
    def __init__(self, load: Load, judge: Any) -> None:
        self.moods, self.spends, self.judge = list(load.moods), list(load.spends), judge

    async def on_event(self, event: Event, run: RunContext) -> Any:
        if self.spends and self.spends.pop(0) and event.type != "model_error":
            try:
                await run.call_model(question(f"{event.type}?"), model=self.judge, purpose="judge")
            except (ModelError, BudgetExceeded, StepFailed):
                return None
        return self.moods.pop(0) if self.moods else None


class Deciding(Hook):
    def __init__(self, load: Load) -> None:
        self.decisions, self.routes = list(load.decisions), list(load.routes)

    def on_tool_call(self, call: Any) -> Any:
        return self.decisions.pop(0) if self.decisions else None

    @hookimpl
    def locus_decide_route(self, node: str) -> str | None:
        return self.routes.pop(0) if self.routes else None


class Reviewing(Hook):
    def __init__(self, load: Load) -> None:
        self.reviews = list(load.reviews)

    @hookimpl
    def locus_review_answer(self, answer: Message) -> Revise | None:
        return Revise("again") if self.reviews and self.reviews.pop(0) else None


class Wrapping(Hook):
    def __init__(self, load: Load) -> None:
        self.attempts, self.stamps = list(load.attempts), load.stamps

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
        done = await call_next(request)
        for _ in range(self.attempts.pop(0) if self.attempts else 0):
            done = await call_next(request)
        return done

    @hookimpl
    async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> AgentState:
        done: AgentState = await call_next(state)
        return done.with_metadata("seen", f"{done.metadata.get('seen', '')}{node[0]}") if self.stamps else done


class Reflecting(Hook):
    def __init__(self, load: Load, judge: Any) -> None:
        self.policy, self.asks = load.reflects
        self.judge = judge

    @hookimpl
    def locus_register_reflect_policies(self) -> list[Any]:
        return [self.policy]

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        if self.asks:
            try:
                got = await run.call_model(question("so?"), model=self.judge, purpose="reflect")
            except (ModelError, BudgetExceeded, StepFailed):
                return state.with_confidence(0.1)
            return state.with_metadata("judged", got.message.text)
        return state.with_confidence(0.5)


class Loaded:
    """An agent under a load, and the same agent again."""

    def __init__(self, load: Load) -> None:
        self.load, self.world = load, World()
        self.judge = ScriptedModel(*load.judgments, "fine", name="other:model", after="cycle")
        self.model = ScriptedModel(*[turn for script in load.scripts for turn in script], after="repeat")

    def agent(self, store: JournalStore, **changes: Any) -> Agent[Any, Any]:
        """A fresh agent, as after a restart.

        Args:
            store: where its threads are.
            changes: keywords of `Agent` in place of the usual ones.
        """
        load = self.load
        hooks: list[Any] = [Observing(load, self.judge), Wrapping(load)]
        hooks += [Deciding(load)] if load.decisions or load.routes else []
        hooks += [Reviewing(load)] if load.reviews else []
        hooks += [Reflecting(load, self.judge)] if load.reflects is not None else []
        manager = None
        if load.keeps is not None:
            manager = SummarizingManager(load.keeps + 1, keep_recent=load.keeps, model=self.judge)
        usual: dict[str, Any] = {
            "model": self.model,
            "tools": self.world.tools(),
            "tool_execution": "sequential" if load.sequential else "concurrent",
            "termination": load.condition | MaxIterations(8),
            "hooks": hooks,
            "conversation_manager": manager,
            "checkpointer": store,
            "clock": TickingClock(),
        }
        return Agent[Any, Any](**{**usual, **changes})

    async def run(self, store: JournalStore) -> None:
        """All user turns on the thread ``"t"``; every question is answered."""
        agent = self.agent(store)
        limits = [*self.load.limits, *[None] * len(self.load.scripts)]
        for n, _ in enumerate(self.load.scripts):
            result = await agent.run(f"turn {n}", thread_id="t", termination=limits[n])
            for _ in range(20):
                if not result.interrupts:
                    break
                result = await self._answered(agent, result)

    async def _answered(self, agent: Agent[Any, Any], result: AgentResult[Any]) -> AgentResult[Any]:
        return await agent.resume("t", {q.interrupt_id: "allow" if q.options else "yes" for q in result.interrupts})


def loads() -> SearchStrategy[Load]:
    """Loads with any of the parts."""
    moods = st.sampled_from([None, None, None, None, Retry("again"), Retry(), Cancel("a whim")])
    decisions = st.sampled_from([None, Allow(), Reject("no"), Interrupt("May it?"), Cancel("never")])
    routes = st.sampled_from([None, None, "reflect", "think", "terminate"])
    judgments: Any = st.sampled_from(["good", "bad", ModelError("no judge"), ""])
    reflects = st.tuples(st.sampled_from([EveryIterations(1), EveryIterations(2), OnToolError()]), st.booleans())
    limits = st.sampled_from([TokenLimit(40), TokenLimit(100), ToolCalled("look"), MaxIterations(1), MaxIterations(3)])
    times = st.sampled_from([TimeLimit(s) for s in (0.5, 2.0, 4.0, 8.0)])
    return st.builds(
        Load,
        scripts=st.lists(awkward_scripts(max_turns=3), min_size=1, max_size=2),
        moods=_maybe(st.lists(moods, max_size=30), ()),
        decisions=_maybe(st.lists(decisions, max_size=5), ()),
        routes=_maybe(st.lists(routes, max_size=8), ()),
        reviews=_maybe(st.lists(st.booleans(), max_size=4), ()),
        spends=_maybe(st.lists(st.booleans(), max_size=20), ()),
        judgments=st.lists(judgments, max_size=4),
        attempts=_maybe(st.lists(st.integers(0, 2), max_size=4), ()),
        stamps=st.booleans(),
        reflects=st.none() | reflects,
        keeps=st.none() | st.integers(1, 4),
        condition=limits | times,
        limits=_maybe(st.lists(st.none() | limits, max_size=2), ()),
        sequential=st.booleans(),
    )


def _maybe(some: SearchStrategy[Any], nothing: Any) -> SearchStrategy[Any]:
    return st.sampled_from([st.just(nothing), some]).flatmap(lambda one: one)
