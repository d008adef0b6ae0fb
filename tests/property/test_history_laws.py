"""Whatever happens to a run, every request and every final history is one that a provider takes.

Tools that fail or are unknown, limits, cancels, compaction that cuts everywhere, breaks at any write, questions that
are answered or left open, several turns on one thread; thinking with signatures in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from attrs import evolve, field, frozen
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.property.breaks import Break, Fragile, breaks
from tests.property.loop_world import World, calls

from locus import Agent, AgentResult, Cancel, Event, Hook, Message, ModelRequest, Reject, Retry, ToolContext, tool
from locus.core.errors import ModelError, NothingToResume
from locus.core.journal import BLANK, START, Transition, entry_from_json, entry_to_json, fold
from locus.core.messages import Block, Role, TextBlock, ThinkingBlock, ToolCall
from locus.core.state import AgentState
from locus.core.termination import (
    CostLimit,
    CustomCondition,
    MaxIterations,
    NoProgress,
    TerminationCondition,
    TimeLimit,
    TokenLimit,
    ToolCalled,
)
from locus.journal.store import Claim
from locus.models.protocol import ModelResponse, OnChunk, Price
from locus.plugin import ConversationManager, View
from locus.tools.definition import Tool
from locus_plugin_conversation import LLMCompactor, SlidingWindowManager, SummarizingManager
from locus_testkit import (
    FakeClock,
    HistoryInvalid,
    ScriptedModel,
    SimulatedCrash,
    assert_valid_request,
    call,
    history_problems,
    is_crash,
    malformed_call,
)

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])

# -- what a model says -----------------------------------------------------------------------------------

_HOW = ("fine", "fine", "none", "odd", "picture", "raise", "retryable", "group")

_asked: SearchStrategy[ToolCall] = st.one_of(
    calls(how=_HOW),
    calls(how=_HOW),
    st.builds(lambda n: call("ask", n=n), st.integers(0, 1)),
    st.builds(lambda n: call("wait", seconds=n), st.integers(0, 4)),
    st.builds(call, st.sampled_from(["nope", "functions.act", ""])),
    st.builds(lambda n: call("look", n=n), st.sampled_from(["x", None, []])),
    st.builds(malformed_call, st.sampled_from(["act", "ask"]), st.sampled_from(["", '{"n":', "\ud800"])),
)
_words = st.sampled_from(["", "hm", "so \u00e9", "page " * 60])
_thoughts = st.lists(
    st.builds(
        ThinkingBlock, _words, st.sampled_from([None, "s1", "s2"]), extras=st.sampled_from([{}, {"id": "t", "n": 1}])
    ),
    max_size=2,
)


def _turn(before: list[ThinkingBlock], text: str, asked: list[ToolCall], between: ThinkingBlock | None) -> list[Block]:
    said: list[Block] = [*before, *([TextBlock(text)] if text else []), *asked]
    if between is not None:
        said.insert(len(said) - len(asked) // 2, between)
    return said


_turns = st.builds(
    _turn,
    _thoughts,
    _words,
    st.lists(_asked, min_size=1, max_size=3),
    st.none() | st.builds(ThinkingBlock, st.just("between"), st.just("s3")),
)
_answers = st.builds(_turn, _thoughts, st.sampled_from(["done", "FINAL"]), st.just([]), st.none())
_failures = st.sampled_from([ModelError("busy"), ModelError("down", retryable=False)])


# -- what stops it -----------------------------------------------------------------------------------------


def three_tools(state: AgentState) -> bool:
    """A limit on tool calls."""
    return len(state.tool_executions) >= 3


limits: SearchStrategy[TerminationCondition] = st.one_of(
    st.builds(MaxIterations, st.integers(1, 4)),
    st.builds(TokenLimit, st.integers(1, 60)),
    st.builds(TimeLimit, st.integers(1, 6)),
    st.builds(CostLimit, st.sampled_from([1e-6, 2e-5, 5e-5])),
    st.just(CustomCondition(three_tools)),
    st.just(NoProgress(2)),
    st.builds(ToolCalled, st.sampled_from(["act", "ask"])),
)

managers: SearchStrategy[ConversationManager | None] = st.one_of(
    st.none(),
    st.integers(1, 6).flatmap(
        lambda n: st.builds(SlidingWindowManager, st.just(n), slack=st.none() | st.integers(0, n - 1))
    ),
    st.builds(SummarizingManager, st.integers(1, 7), st.integers(1, 4)),
    st.builds(
        LLMCompactor,
        window=st.integers(40, 300),
        trigger=st.just(0.7),
        head=st.integers(0, 2),
        tail=st.floats(0.05, 0.6),
        tool_output_ttl=st.integers(0, 3),
    ),
)


class Moody(Hook):
    """Cancels, rejects or has things done again, at the events that were drawn."""

    def __init__(self, moods: dict[int, Any]) -> None:
        self.moods, self.heard = moods, 0

    def on_event(self, event: Event) -> Any:
        self.heard += 1
        return self.moods.get(self.heard)


moods = st.dictionaries(
    st.integers(1, 30), st.sampled_from([Cancel("enough"), Reject("no"), Retry("again"), Retry("again")]), max_size=3
)


# -- the world ---------------------------------------------------------------------------------------------


class Watched:
    """A model that looks at every request before it answers; what it said is what must come back."""

    name = "scripted:watched"
    price = Price(prompt=1.0, completion=1.0)

    def __init__(self, script: Sequence[Any], ids: Any) -> None:
        self.inner = ScriptedModel(*script, ids=ids, after="cycle")
        self.summariser = ScriptedModel("They spoke.", ModelError("down"), "", after="cycle")
        self.said: list[Message] = []
        self.requests = self.summaries = 0
        self.wrong: list[str] = []

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.requests += 1
        if request.purpose == "summarize":
            self.summaries += 1
            self.look(request, None)
            return await self.summariser.complete(request, on_chunk)
        self.look(request, self.said)
        response = await self.inner.complete(request, on_chunk)
        self.said.append(response.message)
        return response

    def look(self, request: ModelRequest, said: list[Message] | None) -> None:
        try:
            assert_valid_request(request.messages, said)
        except HistoryInvalid as e:
            self.wrong.append(f"request {self.requests}: {e}")


class Written(Fragile):
    """What is read has been text in between, as it has with a store on a disk."""

    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        entries = tuple(evolve(e, body=entry_from_json(entry_to_json(e.body))) for e in claim.entries)
        return evolve(claim, entries=entries)


@frozen(kw_only=True)
class Story:
    """A thread: what the model says, what the user asks, and what happens meanwhile."""

    script: list[Any]
    turns: int = 1
    system: tuple[str | None, ...] = (None,)
    breaks: list[Break] = field(factory=list)
    moods: dict[int, Any] = field(factory=dict)
    limit: TerminationCondition | None = None
    manager: Any = None
    mode: Any = "concurrent"
    ids: Any = "unique"
    every: int | None = None
    patient: bool = True


stories = st.builds(
    Story,
    script=st.lists(
        st.sampled_from([_turns] * 8 + [_answers, _failures]).flatmap(lambda one: one), min_size=1, max_size=6
    ).map(lambda turns: [*turns, "done"]),
    turns=st.integers(1, 3),
    system=st.lists(st.sampled_from([None, "Be brief.", "Be long."]), min_size=3, max_size=3).map(tuple),
    breaks=st.lists(breaks, max_size=4),
    moods=moods,
    limit=st.none() | limits,
    manager=managers,
    mode=st.sampled_from(["concurrent", "sequential"]),
    ids=st.sampled_from(["unique", "per_turn", "same"]),
    every=st.sampled_from([None, 1, 4]),
    patient=st.booleans(),
)


class Thread:
    """A story as it is played."""

    def __init__(self, story: Story) -> None:
        self.story, self.store, self.clock = story, Written(), FakeClock()
        self.store.snapshot_every = story.every
        self.model, self.hook = Watched(story.script, story.ids), Moody(story.moods)
        self.world = World()
        self.broken = 0
        self.ends: list[str] = []
        self.wrong: list[str] = []

    def tools(self) -> list[Tool[..., Any]]:
        @tool
        async def ask(n: int, ctx: ToolContext[Any]) -> str:
            """Ask a person."""
            return f"{ctx.interrupt(f'ship {n}?')}"

        @tool
        async def wait(seconds: int) -> str:
            """Take some time."""
            self.clock.advance(seconds)
            return "waited"

        return [*self.world.tools(), ask, wait]

    def agent(self, turn: int) -> Agent[Any, Any]:
        return Agent[Any, Any](
            self.model,
            tools=self.tools(),
            tool_execution=self.story.mode,
            system_prompt=self.story.system[turn % len(self.story.system)],
            termination=self.story.limit,
            max_iterations=6,
            conversation_manager=self.story.manager,
            hooks=[self.hook],
            checkpointer=self.store,
            clock=self.clock,
        )

    async def runs(self) -> int:
        """How many runs have begun."""
        bodies = [e.body for e in await self.store.read("t")]
        return sum(isinstance(b, Transition) and b.node == START for b in bodies)

    async def segment(self, turn: int, plan: Break | None, answers: Any) -> AgentResult[Any] | None:
        agent = self.agent(turn)
        run = agent.run(f"turn {turn}", thread_id="t") if await self.runs() == turn else agent.resume("t", answers)
        with anyio.CancelScope() as scope:
            self.store.expect(plan, scope)
            try:
                return await (self.left(run, plan.at) if plan is not None and plan.how == "left" else run)
            except SimulatedCrash:
                pass
            except BaseExceptionGroup as e:
                if not is_crash(e):
                    raise
        self.broken += 1
        return None

    async def left(self, run: Any, at: int) -> AgentResult[Any] | None:
        seen = 0
        async for _ in run:
            seen += 1
            if seen == at:
                await run.aclose()
                self.broken += 1
                return None
        result: AgentResult[Any] = run.result
        return result

    async def turn(self, turn: int, plans: list[Break]) -> None:
        """One turn of the user, to its end; an impatient one leaves questions open and crashed runs as they are."""
        answers: Any = None
        for _ in range(40):
            try:
                result = await self.segment(turn, plans.pop(0) if plans else None, answers)
            except NothingToResume:
                return  # it had ended when it broke off
            answers = None
            impatient = not self.story.patient and turn + 1 < self.story.turns and await self.runs() > turn
            if result is not None:
                self.ends.append(result.stop_reason or "")
                if not result.interrupts:
                    self.look(result.state)
                    return
                answers = {q.interrupt_id: f"yes, {q.question}" for q in result.interrupts}
            if impatient:
                return
        raise AssertionError("it never ends")

    def look(self, state: AgentState) -> None:
        self.wrong += history_problems(state.messages, self.model.said)

    async def play(self) -> None:
        plans = list(self.story.breaks)
        for turn in range(self.story.turns):
            await self.turn(turn, plans)
        bodies = [e.body for e in await self.store.read("t")]
        self.look(fold(BLANK, [entry_from_json(entry_to_json(b)) for b in bodies]))


def played(story: Story, backend: str = "asyncio") -> Thread:
    thread = Thread(story)
    anyio.run(thread.play, backend=backend)
    return thread


@both_backends
@settings(max_examples=4 * settings().max_examples)  # an example costs little, and so much may come together
@given(story=stories)
def test_every_request_and_every_history_is_one_that_a_provider_takes(backend: str, story: Story) -> None:
    thread = played(story, backend)
    for reason in thread.ends:
        note(reason.split(":")[0])
    note(f"broken off {thread.broken} times")
    note(f"summaries: {thread.model.summaries > 0}")
    assert (thread.model.wrong, thread.wrong) == ([], [])


# -- the proof of the proof ----------------------------------------------------------------------------------


THOUGHT = ThinkingBlock("hm", "signed")
TALK = Story(
    script=[[THOUGHT, call("act", n=1), call("look", n=1)], [THOUGHT, call("act", n=2)], [THOUGHT, "done"]],
    turns=2,
    system=("Be brief.",),
)


@frozen
class Showing:
    """A conversation manager that does one thing to the messages."""

    change: Any

    async def view(self, state: AgentState, run: Any) -> View:
        return View(self.change(state.messages))


def without_thinking(message: Message) -> Message:
    return evolve(message, content=tuple(b for b in message.content if not isinstance(b, ThinkingBlock)))


def unsigned(message: Message) -> Message:
    blocks = (evolve(b, signature=None) if isinstance(b, ThinkingBlock) else b for b in message.content)
    return evolve(message, content=tuple(blocks))


def system_last(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    rest = tuple(m for m in messages if m.role is not Role.SYSTEM)
    return (rest[0], *(m for m in messages if m.role is Role.SYSTEM), *rest[1:])


BROKEN = {
    "keeps the newest two": (lambda ms: (*ms[:2], *ms[2:][-2:]), "where that of|never called|is where results belong"),
    "drops results": (lambda ms: tuple(m for m in ms if not m.tool_results), "has no result"),
    "drops calls": (lambda ms: tuple(m for m in ms if not m.tool_calls), "never called"),
    "drops thinking": (lambda ms: tuple(map(without_thinking, ms)), "its thinking is"),
    "drops signatures": (lambda ms: tuple(map(unsigned, ms)), "its thinking is"),
    "turns around": (lambda ms: (ms[0], *reversed(ms[1:])), "is where results belong|never called"),
    "puts the system prompt second": (system_last, "comes after other messages"),
    "ends with an answer": (lambda ms: (*ms, Message(Role.ASSISTANT, "so")), "there is nothing for the model"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_manager_that_breaks_a_conversation_is_found(name: str) -> None:
    change, said = BROKEN[name]
    assert played(TALK).model.wrong == []
    found = played(evolve(TALK, manager=Showing(change))).model.wrong
    assert any(part in each for each in found for part in said.split("|")), found


def test_a_history_that_loses_a_result_or_a_thought_is_found() -> None:
    thread = played(TALK)
    [turn, *_] = [i for i, m in enumerate(thread.model.said) if m.tool_calls]
    state = anyio.run(thread.store.peek, "t")
    assert state is not None
    messages = fold(BLANK, [e.body for e in anyio.run(thread.store.read, "t")]).messages
    results = [i for i, m in enumerate(messages) if m.tool_results]
    assert history_problems(messages, thread.model.said) == ()
    assert history_problems([m for i, m in enumerate(messages) if i != results[0]], thread.model.said)
    thoughtless = [without_thinking(m) for m in messages]
    assert len(history_problems(thoughtless, thread.model.said)) == len(thread.model.said)
    assert turn == 0
