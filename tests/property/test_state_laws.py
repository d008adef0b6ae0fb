"""The laws of the state: nothing changes a state, and a checkpoint gives back the state it was made from."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies_values import (
    blocks,
    changes,
    counts,
    data,
    executions,
    frozen_objects,
    messages,
    moments,
    states,
    steps,
    usages,
)

from locus.core.executions import ExecutionIndex, ToolExecution
from locus.core.frozen import FrozenDict, freeze, thaw
from locus.core.messages import Block, Message
from locus.core.state import AgentState

Change = Callable[[AgentState], AgentState]
grown = st.lists(changes, max_size=6)


def saved(state: AgentState) -> str:
    """What would stand on disk."""
    return json.dumps(state.to_checkpoint(), allow_nan=False)


def marked(state: AgentState) -> AgentState:
    """The state as a transition commits it."""
    return state.commit(updated_at=state.updated_at, active_seconds=state.active_seconds, iteration=state.iteration)


# -- builders ---------------------------------------------------------------------------------------


@given(states, grown, st.booleans())
def test_a_builder_never_changes_the_state_it_starts_from(state: AgentState, story: list[Change], commit: bool) -> None:
    seen = [marked(state) if commit else state]
    written = [saved(seen[0])]
    for change in story:
        seen.append(change(seen[-1]))
        written.append(saved(seen[-1]))
    assert [saved(s) for s in seen] == written


@given(states, grown, st.booleans())
def test_a_built_state_equals_the_one_made_from_its_fields(
    state: AgentState, story: list[Change], commit: bool
) -> None:
    built = marked(state) if commit else state
    for change in story:
        built = change(built)
    fields = {name: value for name, value in built.__dict__.items() if not name.startswith("_")}
    assert AgentState(**fields) == built
    assert repr(AgentState(**fields)) == repr(built)


@given(states, st.lists(messages, max_size=3), st.lists(executions, max_size=4))
def test_the_results_of_a_batch_are_its_messages_its_executions_and_its_errors(
    state: AgentState, said: list[Message], ran: list[ToolExecution]
) -> None:
    expected = state.with_messages(said)
    for execution in ran:
        expected = expected.with_tool_execution(execution)
        if execution.error is not None:
            expected = expected.with_error(f"{execution.tool_name}: {execution.error}")
    assert state.with_results(said, ran) == expected


@given(states, messages, steps, usages)
def test_an_answer_is_its_message_its_step_and_its_tokens(
    state: AgentState, message: Message, step: Any, usage: Any
) -> None:
    expected = (
        state.with_message(message)
        .with_reasoning_step(step)
        .with_token_usage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            estimated_tokens=usage.estimated_tokens,
            cost=usage.cost,
        )
    )
    answered = state.with_answer(message, step, usage)
    assert answered == AgentState.from_checkpoint(
        {**expected.to_checkpoint(), "pending_revision": False, "label": answered.to_checkpoint()["label"]}
    )


@given(states, st.text(), moments)
def test_a_new_turn_carries_the_conversation_and_nothing_else(state: AgentState, run_id: str, now: Any) -> None:
    turn = state.next_turn(run_id=run_id, now=now)
    fresh = AgentState(run_id=run_id, started_at=now, updated_at=now)
    kept = {
        "label",
        "agent_id",
        "messages",
        "metadata",
        "max_iterations",
        "confidence_threshold",
        "tool_loop_threshold",
        "terminal_tools",
        "token_budget",
    }
    for name, value in turn.__dict__.items():
        if not name.startswith("_"):
            assert value == getattr(state if name in kept else fresh, name), name


# -- checkpoints ------------------------------------------------------------------------------------


@given(states, grown)
def test_a_checkpoint_gives_the_state_back(state: AgentState, story: list[Change]) -> None:
    for change in story:
        state = change(state)
    restored = AgentState.from_checkpoint(json.loads(saved(state)))
    assert restored == state
    assert saved(restored) == saved(state)
    assert {k: type(v) for k, v in restored.__dict__.items() if k[0] != "_"} == {
        k: type(v) for k, v in state.__dict__.items() if k[0] != "_"
    }


@given(states, grown)
def test_a_state_survives_pickling_and_copying(state: AgentState, story: list[Change]) -> None:
    state = marked(state)
    for change in story:
        state = change(state)
    assert pickle.loads(pickle.dumps(state)) == state
    assert copy.copy(state) == state
    assert copy.deepcopy(state) == state


@given(st.one_of(messages, blocks))
def test_a_message_or_block_survives_pickling_and_is_hashable(value: Message | Block) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert hash(again) == hash(value)


# -- free-form data ---------------------------------------------------------------------------------


@given(data)
def test_frozen_data_equals_what_it_was_made_from_and_can_be_thawed(value: Any) -> None:
    frozen = freeze(value)
    assert freeze(frozen) == frozen
    assert freeze(thaw(frozen)) == frozen
    hash(frozen)


@given(frozen_objects, st.text(), data)
def test_a_frozen_mapping_refuses_every_change(mapping: FrozenDict[str, Any], key: str, value: Any) -> None:
    before = repr(mapping)
    attempts: list[Callable[[], object]] = [
        lambda: mapping.__setitem__(key, value),
        lambda: mapping.__delitem__(key),
        lambda: mapping.update({key: value}),
        lambda: mapping.setdefault(key, value),
        lambda: mapping.pop(key, None),
        lambda: mapping.popitem(),
        lambda: mapping.clear(),
        lambda: mapping.__ior__({key: value}),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match="frozen"):
            attempt()
    assert repr(mapping) == before


# -- the index of executions ------------------------------------------------------------------------


def _with_key(entries: tuple[ToolExecution, ...], key: str) -> ToolExecution | None:
    found = [e for e in entries if e.key == key and e.started and not e.retryable]
    return found[-1] if found else None


def _first(entries: tuple[ToolExecution, ...], name: str, *, require_success: bool) -> ToolExecution | None:
    for e in entries:
        if e.tool_name == name and (e.error is None if require_success else e.started):
            return e
    return None


@given(st.lists(st.tuples(counts, executions), max_size=12))
def test_forks_of_a_state_never_see_each_others_executions(story: list[tuple[int, ToolExecution]]) -> None:
    # Each step extends any state made so far: the newest one, or an older one, which makes a fork.
    seen = [AgentState()]
    for pick, execution in story:
        seen.append(seen[pick % len(seen)].with_tool_execution(execution))
        for state in seen:  # asked every time, so that what is remembered between questions is tested as well
            for name in ("search", "book"):
                for strict in (True, False):
                    expected = _first(state.tool_executions, name, require_success=strict)
                    assert state.first_execution(name, require_success=strict) is expected
            for key in ("", "k1", "k2"):
                assert state.find_execution(key) is _with_key(state.tool_executions, key)


@given(st.lists(executions, max_size=5), st.lists(executions, max_size=3), st.lists(executions, max_size=3))
def test_an_index_forks_only_where_the_log_goes_on_differently(
    shared: list[ToolExecution], left: list[ToolExecution], right: list[ToolExecution]
) -> None:
    index = ExecutionIndex(tuple(shared))
    one = other = index
    for i, execution in enumerate(left):
        one = one.with_execution(len(shared) + i, execution)
    for i, execution in enumerate(right):
        other = other.with_execution(len(shared) + i, execution)
    assert one is index
    assert (other is index) == (not (left and right))
    for entries, made in (([*shared, *left], one), ([*shared, *right], other)):
        for key in ("", "k1", "k2"):
            assert made.with_key(len(entries), key) is _with_key(tuple(entries), key)
