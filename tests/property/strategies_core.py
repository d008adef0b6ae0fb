"""States, condition trees and ways a state grows: what the laws of the kernel's values are stated over.

The ranges are small on purpose, so that thresholds are met about as often as they are missed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from typing import Any

from hypothesis import strategies as st

from locus.core.messages import Message, Role, ToolCall, ToolResult
from locus.core.state import AgentState, ToolExecution
from locus.core.termination import (
    ConfidenceMet,
    CostLimit,
    CustomCondition,
    Deadline,
    MaxIterations,
    NoProgress,
    NotCondition,
    NoToolCalls,
    TerminationCondition,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
    ToolCallLimit,
)

START = datetime(2026, 5, 4, 12, tzinfo=UTC)
TOOLS = ("search", "submit")


def has_large_amount(arguments: Mapping[str, Any]) -> bool:
    """A predicate that can be named."""
    return bool(arguments.get("amount", 0) > 1)


def is_even(state: AgentState) -> bool:
    """A predicate that can be named, and that is not monotone."""
    return state.iteration % 2 == 0


def has_errors(state: AgentState) -> bool:
    """Another one."""
    return any(not e.succeeded for e in state.tool_executions)


def checkpoint_bytes(state: AgentState) -> str:
    """What would be written to disk; equal for states that cannot be told apart."""
    return json.dumps(state.to_checkpoint(), sort_keys=True, allow_nan=False)


# -- states ---------------------------------------------------------------------------------------

words = st.sampled_from(["", "working on it", "done", "FINAL ANSWER: 42"])
call_ids = st.sampled_from(["1", "2"])
arguments = st.fixed_dictionaries({}, optional={"amount": st.integers(0, 3)})
tool_calls = st.builds(ToolCall, call_ids, st.sampled_from(TOOLS), arguments)

users = st.builds(Message, st.just(Role.USER), words)
answers = st.builds(Message, st.just(Role.ASSISTANT), words)
requests = st.builds(
    lambda text, calls: Message(Role.ASSISTANT, (*Message(Role.ASSISTANT, text).content, *calls)),
    words,
    st.lists(tool_calls, min_size=1, max_size=3),
)
results = st.builds(lambda i: Message(Role.TOOL, (ToolResult(i, "ok"),)), call_ids)
messages = st.lists(st.one_of(users, answers, requests, results), max_size=6)


@st.composite
def executions(draw: st.DrawFn, iteration: st.SearchStrategy[int] | None = None) -> ToolExecution:
    """An execution; the key is that of its name and arguments, as the loop makes it, or missing."""
    name, given_arguments = draw(st.sampled_from(TOOLS)), draw(arguments)
    error = draw(st.sampled_from([None, None, "ValueError: no"]))
    return ToolExecution(
        tool_name=name,
        arguments=given_arguments,
        result="ok" if error is None else None,
        error=error,
        cache_hit=error is None and draw(st.booleans()),
        key=f"{name}{sorted(given_arguments.items())}" if draw(st.booleans()) else "",
        iteration=draw(iteration if iteration is not None else st.integers(0, 6)),
        started=error is None or draw(st.booleans()),
    )


@st.composite
def states(draw: st.DrawFn) -> AgentState:
    """Any state: also those that no run would reach."""
    seconds = draw(st.integers(0, 8))
    ran = sorted(draw(st.lists(executions(), max_size=6)), key=lambda e: e.iteration)
    return AgentState(
        run_id="run",
        messages=draw(messages),
        iteration=draw(st.integers(0, 6)),
        tool_executions=ran,
        tool_history=[e.tool_name for e in ran],
        confidence=draw(st.sampled_from([0.0, 0.5, 0.8, 0.9, 1.0])),
        confidence_threshold=draw(st.sampled_from([0.5, 0.8])),
        tool_loop_threshold=draw(st.integers(0, 4)),
        prompt_tokens_used=draw(st.integers(0, 60)),
        completion_tokens_used=draw(st.integers(0, 60)),
        token_budget=draw(st.none() | st.integers(0, 100)),
        cost=draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0])),
        active_seconds=float(seconds),
        pending_revision=draw(st.booleans()),
        started_at=START,
        updated_at=START + timedelta(seconds=seconds + draw(st.integers(0, 4))),
    )


@st.composite
def growing(draw: st.DrawFn) -> tuple[AgentState, AgentState]:
    """A state, and one that the same run may reach later."""
    state = draw(states())
    more = draw(st.lists(executions(st.integers(state.iteration, state.iteration + 2)), max_size=3))
    later = reduce(AgentState.with_tool_execution, more, state)
    later = later.with_messages(draw(messages)).with_confidence(draw(st.floats(0, 1)))
    later = later.with_token_usage(prompt_tokens=draw(st.integers(0, 40)), cost=draw(st.sampled_from([0.0, 0.3, 1.0])))
    passed = draw(st.integers(0, 5))
    return state, later.commit(
        updated_at=state.updated_at + timedelta(seconds=passed + draw(st.integers(0, 3))),
        active_seconds=state.active_seconds + passed,
        iteration=state.iteration + draw(st.integers(0, 3)),
    )


# -- conditions -----------------------------------------------------------------------------------

#: Once satisfied, satisfied for the rest of the run.
monotone_leaves: st.SearchStrategy[TerminationCondition] = st.one_of(
    st.builds(MaxIterations, st.integers(1, 8)),
    st.builds(TokenLimit, st.integers(0, 120)),
    st.just(TokenLimit()),
    st.builds(ToolCallLimit, st.integers(0, 6)),
    st.builds(TimeLimit, st.integers(0, 10)),
    st.builds(Deadline, st.integers(0, 15).map(lambda s: START + timedelta(seconds=s))),
    st.builds(CostLimit, st.sampled_from([0.0, 0.4, 1.0, 3.0])),
    st.builds(
        ToolCalled,
        st.sampled_from(TOOLS),
        st.sampled_from([None, has_large_amount]),
        require_success=st.booleans(),
    ),
)

leaves: st.SearchStrategy[TerminationCondition] = st.one_of(
    monotone_leaves,
    st.just(NoToolCalls()),
    st.builds(ConfidenceMet, st.sampled_from([None, 0.5, 0.9])),
    st.builds(TextMention, st.sampled_from(["FINAL", "(?i)DONE$"])),
    st.builds(CustomCondition, st.sampled_from([is_even, has_errors]), st.sampled_from([None, "mine"])),
    st.builds(NoProgress, st.sampled_from([None, 2, 3])),
)


def compose(inner: st.SearchStrategy[TerminationCondition]) -> st.SearchStrategy[TerminationCondition]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda branches: reduce(and_, branches)),
        several.map(lambda branches: reduce(or_, branches)),
        inner.map(lambda c: ~c),
        inner.map(NotCondition),
    )


conditions: st.SearchStrategy[TerminationCondition] = st.recursive(leaves, compose, max_leaves=8)
