"""A small conversation as journal entries: what the store contract writes.

Fixed and readable rather than generated, so that a failing law shows the same entries every time; the state
machine of `locus_testkit.machines` is where generated journals go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from attrs import evolve, frozen

from locus import Option
from locus.core import EMPTY, freeze
from locus.core.journal import (
    BLANK,
    END,
    START,
    Answered,
    Asked,
    Body,
    Entry,
    Intent,
    Outcome,
    Paused,
    Resumed,
    StateDelta,
    StepId,
    Transition,
    delta,
    fold,
)
from locus.core.messages import (
    MediaBlock,
    Message,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
)
from locus.core.state import AgentState, ReasoningStep, ToolExecution
from locus.journal import Claim

__all__ = [
    "AWKWARD",
    "NOON",
    "Story",
    "bodies_of",
    "fold_claim",
    "last_transition",
    "state_of",
    "steps",
    "steps_since",
    "story",
    "texts",
    "without_delta",
]

#: A time to be early or late for.
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

#: Data that JSON alone cannot express, and text that careless code mangles.
AWKWARD: Any = freeze(
    {
        "integer keys": {1: "one", -2: "minus two"},
        "set": {"a", "b"},
        "bytes": b"\x00\xff",
        "time": NOON,
        "day": date(2030, 1, 1),
        "infinity": float("inf"),
        "numbers": [0, -1, 2**63, 2**200, 0.1, 1e300],
        "nothing": None,
        "text": "tab\t newline\n nul\x00 quote ' \" \\ \u202e \u00e9 e\u0301 \U0001f600",
        "looks like a tag": {"$": "set", "v": [1]},
        "empty": {"": (), "nested": {}},
    }
)


@frozen
class Story:
    """States that grow, and the transitions between them.

    Args:
        states: the state after each transition.
        bodies: the transitions; the first one starts from a blank state.
    """

    states: tuple[AgentState, ...]
    bodies: tuple[Transition, ...]

    @property
    def end(self) -> AgentState:
        """The state after all of them."""
        return self.states[-1]

    def grow(self, state: AgentState, *, not_before: datetime | None = None) -> Story:
        """The same with one more transition.

        Args:
            state: the state after it.
            not_before: when the node that follows may start.
        """
        body = _transition(self.end, state, "think", "think", not_before=not_before)
        return Story((*self.states, state), (*self.bodies, body))


def story(run_id: str = "run", *, start: AgentState = BLANK, size: int = 4) -> Story:
    """A run with a tool call an iteration.

    Args:
        run_id: the run's id, which all texts contain.
        start: the state it follows on.
        size: how many transitions, 1 or more.
    """
    state = AgentState(
        run_id=run_id,
        messages=(*start.messages, Message(Role.USER, f"{run_id}: do it \U0001f600")),
        started_at=NOON,
        updated_at=NOON,
    ).with_metadata("awkward", AWKWARD)
    states, bodies = [state], [_transition(start, state, START, "think")]
    while len(states) < size:
        before = states[-1].commit(
            updated_at=NOON + timedelta(seconds=len(states)),
            active_seconds=float(len(states)),
            iteration=len(states) // 2,
        )
        think = len(states) % 2 == 1
        after = _think(before) if think else _act(before)
        last = len(states) == size - 1
        node, follower = ("think", "execute") if think else ("execute", "think")
        # What a state remembers beside its value is not in the journal: compare with what is.
        bodies.append(_transition(states[-1], after, node, END if last else follower))
        states.append(after)
    return Story(tuple(states), tuple(bodies))


def _transition(
    old: AgentState, new: AgentState, node: str, next_node: str, *, not_before: datetime | None = NOON
) -> Transition:
    return Transition(
        run_id=new.run_id,
        node=node,
        next_node=next_node,
        delta=delta(old, new),
        why="because",
        satisfied=("NoToolCalls",) if next_node == END else (),
        not_before=not_before,
    )


def _think(state: AgentState) -> AgentState:
    said = f"{state.run_id}: thought {len(state.messages)}"
    blocks = (
        ThinkingBlock(said, "signature==", extras=EMPTY),
        TextBlock(said, extras=freeze({"citations": [1, 2]})),
        RawBlock("provider", freeze({"kind": "unknown", "blob": [1, {"a": None}]})),
        ToolCall("call", "look", freeze({"at": said, "deep": {"er": [1, 2.5, None]}})),
        ToolCall("call", "look", malformed='{"at": '),
    )
    step = ReasoningStep(iteration=state.iteration, thought=said, actions=("look", "look"))
    state = state.with_message(Message(Role.ASSISTANT, blocks, extras=freeze({"id": "msg_1"})))
    return state.with_reasoning_step(step).with_token_usage(prompt_tokens=7, completion_tokens=3, cost=0.25)


def _act(state: AgentState) -> AgentState:
    done = ToolExecution(tool_name="look", arguments=freeze({"at": 1}), result="found", key="k", call_id="call")
    failed = ToolExecution(tool_name="look", error="ValueError: no", key="k2", call_id="call", started=False)
    picture = MediaBlock("image", "image/png", data=b"\x89PNG\x00")
    results = (
        Message(Role.TOOL, ToolResult("call", (TextBlock("found"), picture), name="look")),
        Message(Role.TOOL, ToolResult("call", "Error: no", is_error=True, name="look")),
    )
    state = state.with_messages(results).with_tool_execution(done).with_tool_execution(failed)
    return state.with_confidence(0.5).with_error("no")


def steps(run_id: str = "run") -> tuple[Body, ...]:
    """One body of each kind other than a transition."""
    return (
        Intent(run_id=run_id, step_id=StepId(0, "execute", 0), digest="d", policy="keyed"),
        Outcome(run_id=run_id, step_id=StepId(0, "execute", 0), digest="d", value=AWKWARD),
        Outcome(run_id=run_id, step_id=StepId(0, "execute", 1), error="ValueError: no"),
        Asked(
            run_id=run_id,
            interrupt_id="0/execute/2?0",
            step_id=StepId(0, "execute", 2),
            question="Really? \U0001f600",
            options=("yes", Option("no"), Option("maybe", allow=True)),
            tool_name="look",
            call_id="call",
            digest="d",
        ),
        Answered(run_id=run_id, interrupt_id="0/execute/2?0", answer=AWKWARD),
        Paused(run_id=run_id, segment=0, kind="interrupted"),
        Resumed(run_id=run_id, segment=1),
    )


def texts(n: int, run_id: str = "run", *, size: int = 1) -> tuple[Body, ...]:
    """``n`` distinct outcomes, with a text of ``size`` characters each."""
    return tuple(
        Outcome(run_id=run_id, step_id=StepId(0, "text", i, name=run_id), value=f"{i:06}" + "x" * size)
        for i in range(n)
    )


def fold_claim(claim: Claim) -> AgentState:
    """The state that a claim holds."""
    start = BLANK if claim.snapshot is None else claim.snapshot.state
    return fold(start, (entry.body for entry in claim.entries))


def last_transition(claim: Claim) -> Transition | None:
    """The newest transition that a claim shows."""
    found = [entry.body for entry in claim.entries if isinstance(entry.body, Transition)]
    if found:
        return found[-1]
    return None if claim.snapshot is None else claim.snapshot.last


def steps_since(claim: Claim) -> list[Body]:
    """What happened after the newest transition that a claim shows."""
    found = bodies_of(claim.entries)
    while any(isinstance(body, Transition) for body in found):
        found.pop(0)
    return found


def without_delta(transition: Transition | None) -> Transition | None:
    """A transition without its difference, which a store without history may leave out: the state has it."""
    return None if transition is None else evolve(transition, delta=StateDelta())


def state_of(entries: Iterable[Entry]) -> AgentState:
    """The state that a whole journal makes."""
    return fold(BLANK, (entry.body for entry in entries))


def bodies_of(entries: Sequence[Entry]) -> list[Body]:
    """What happened, without the envelope."""
    return [entry.body for entry in entries]
