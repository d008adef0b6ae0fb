"""States: built whole from their fields, and grown by the builders that the loop uses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import reduce
from typing import Any

from attrs import field, frozen
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from locus.core.labels import LEVELS, Label
from locus.core.messages import Message, Role
from locus.core.state import AgentState, ReasoningStep, ToolExecution
from locus_testkit.strategies.data import (
    TOOLS,
    arguments,
    build_once,
    data,
    metadata,
    moments,
    texts,
    tool_names,
)
from locus_testkit.strategies.messages import messages

__all__ = [
    "Growth",
    "grown_states",
    "growths",
    "labels",
    "reasoning_steps",
    "stamps",
    "state_pairs",
    "states",
    "tool_executions",
]

_SHARES = st.floats(0, 1)
_COUNTS = st.integers(0, 50)
_AMOUNTS = st.floats(0, 1_000_000)


@build_once
@st.composite
def labels(draw: DrawFn) -> Label:
    """Labels of all levels, with and without sources."""
    sources = draw(st.frozensets(st.sampled_from(["web", "mail", "transcript"]), max_size=2))
    return Label(draw(st.sampled_from(list(LEVELS))), sources)


@build_once
def tool_executions() -> SearchStrategy[ToolExecution]:
    """Executions that succeeded, failed, were refused or came from the cache; keys repeat."""
    keys = st.sampled_from(["", "key-1", "key-2", "key-3"])
    common: dict[str, SearchStrategy[Any]] = {
        "tool_name": tool_names(),
        "arguments": arguments(),
        "duration_ms": _AMOUNTS,
        "key": keys,
        "call_id": texts(max_size=8),
        "iteration": _COUNTS,
        "label": st.none() | labels(),
        "fields": st.sampled_from([{}, {}, {"*.id": "own"}]),
    }
    places = st.none() | _COUNTS
    good = st.builds(ToolExecution, **common, result=texts(), cache_hit=st.booleans(), media_at=places)
    bad = st.builds(ToolExecution, **common, error=texts(), started=st.booleans(), retryable=st.booleans())
    unknown = st.builds(ToolExecution, **common, error=texts(), outcome_unknown=st.sampled_from([True]))
    return good | bad | unknown


@build_once
def reasoning_steps() -> SearchStrategy[ReasoningStep]:
    """Steps with and without a reflection."""
    return st.builds(
        ReasoningStep,
        iteration=_COUNTS,
        thought=texts(),
        actions=st.lists(tool_names(), max_size=3).map(tuple),
        reflection=st.none() | texts(),
    )


@build_once
@st.composite
def states(draw: DrawFn) -> AgentState:
    """Any state, each field drawn by itself."""
    executions = draw(st.lists(tool_executions(), max_size=4))
    confidences = draw(st.lists(_SHARES, max_size=3))
    started = draw(moments())
    return AgentState(
        run_id=draw(st.uuids().map(str)),
        agent_id=draw(st.none() | texts()),
        messages=tuple(draw(st.lists(messages(), max_size=4))),
        iteration=draw(_COUNTS),
        max_iterations=draw(_COUNTS),
        tool_executions=tuple(executions),
        reasoning_steps=tuple(draw(st.lists(reasoning_steps(), max_size=3))),
        confidence=confidences[-1] if confidences else draw(_SHARES),
        confidence_threshold=draw(_SHARES),
        confidence_history=tuple(confidences),
        tool_history=tuple(execution.tool_name for execution in executions),
        tool_loop_threshold=draw(st.integers(0, 4)),
        terminal_tools=draw(st.frozensets(st.sampled_from(TOOLS))),
        prompt_tokens_used=draw(_COUNTS),
        completion_tokens_used=draw(_COUNTS),
        cached_tokens_used=draw(_COUNTS),
        estimated_tokens_used=draw(_COUNTS),
        token_budget=draw(st.none() | st.integers(0, 100)),
        cost=draw(_AMOUNTS),
        errors=tuple(draw(st.lists(texts(), max_size=2))),
        metadata=draw(metadata()),
        active_seconds=draw(_AMOUNTS),
        pending_revision=draw(st.booleans()),
        revisions=draw(st.integers(0, 2)),
        label=draw(labels()),
        started_at=started,
        updated_at=started + draw(st.timedeltas(timedelta(0), timedelta(days=1))),
    )


@frozen
class Growth:
    """One call of a builder, which shows itself as it is written: ``.with_error('no')``.

    Args:
        method: the builder's name.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(factory=dict)

    def __call__(self, state: AgentState) -> AgentState:
        """The state after the call."""
        made: AgentState = getattr(state, self.method)(*self.args, **self.kwargs)
        return made

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f".{self.method}({', '.join(given)})"


def _growth(method: str, *args: SearchStrategy[Any], **kwargs: SearchStrategy[Any]) -> SearchStrategy[Growth]:
    return st.builds(Growth, st.just(method), st.tuples(*args), st.fixed_dictionaries(kwargs))


@build_once
def growths() -> SearchStrategy[Growth]:
    """One call of any builder of `AgentState`."""
    return st.one_of(
        _growth("with_message", messages()),
        _growth("with_messages", st.lists(messages(), max_size=3).map(tuple)),
        _growth("with_iteration", _COUNTS),
        _growth("with_label", labels()),
        _growth("with_tool_execution", tool_executions()),
        _growth("with_reasoning_step", reasoning_steps()),
        _growth("with_confidence", _SHARES),
        _growth("with_error", texts()),
        _growth("with_answer_fault", st.sampled_from(["Truncated", "EmptyAnswer", "OutputInvalid"]), texts()),
        _growth("with_metadata", texts(max_size=8), data()),
        _growth(
            "with_token_usage",
            prompt_tokens=_COUNTS,
            completion_tokens=_COUNTS,
            cached_tokens=_COUNTS,
            cost=_AMOUNTS,
        ),
        _growth("with_revision", messages(Role.USER)),
        _growth("with_answer_fault", texts(max_size=8), texts()),
        st.builds(_results, st.lists(tool_executions(), max_size=3)),
    )


def _results(executions: list[ToolExecution]) -> Growth:
    told = tuple(Message(Role.TOOL, (execution.result or execution.error or "")) for execution in executions)
    return Growth("with_results", (told, tuple(executions)))


@build_once
def stamps() -> SearchStrategy[Growth]:
    """What a transition does to a state: it stamps it, and later differences are taken from there."""
    return _growth("commit", updated_at=moments(), active_seconds=_AMOUNTS, iteration=_COUNTS)


@st.composite
def grown_states(draw: DrawFn, start: SearchStrategy[AgentState] | None = None, *, max_steps: int = 6) -> AgentState:
    """A state grown from another, by builders and transitions.

    Args:
        draw: given by hypothesis.
        start: where it grows from; None = any state.
        max_steps: the most calls of a builder.
    """
    steps = draw(st.lists(growths() | stamps(), max_size=max_steps))
    return reduce(lambda state, step: step(state), steps, draw(states() if start is None else start))


@build_once
def state_pairs() -> SearchStrategy[tuple[AgentState, AgentState]]:
    """An old state and a new one: mostly grown from the old (marked or not), sometimes unrelated to it."""

    def follow(old: AgentState) -> SearchStrategy[tuple[AgentState, AgentState]]:
        return st.tuples(st.just(old), grown_states(st.just(old)))

    return (states() | grown_states()).flatmap(follow) | st.tuples(states(), states())
