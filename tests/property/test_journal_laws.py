"""The laws of the journal: what a transition writes is what changed, and the fold over it is the state."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies_values import bodies, changes, moments, states

from locus.core.journal import (
    BLANK,
    END,
    START,
    Body,
    StateDelta,
    Transition,
    advance,
    apply,
    delta,
    entry_from_json,
    entry_to_json,
    fold,
)
from locus.core.state import GROWING, AgentState

Change = Callable[[AgentState], AgentState]
stories = st.lists(st.lists(changes, max_size=4), max_size=4)


def marked(state: AgentState) -> AgentState:
    """The state as a transition commits it."""
    return state.commit(updated_at=state.updated_at, active_seconds=state.active_seconds, iteration=state.iteration)


def through_json(change: StateDelta) -> StateDelta:
    """The delta after it was written to disk and read."""
    body = Transition(run_id="", node=START, next_node=END, delta=change)
    read = entry_from_json(json.loads(json.dumps(entry_to_json(body), allow_nan=False)))
    assert isinstance(read, Transition)
    return read.delta


# -- delta and apply --------------------------------------------------------------------------------


@given(states, st.lists(changes, max_size=6))
def test_applying_what_was_added_to_a_committed_state_gives_the_new_one(state: AgentState, story: list[Change]) -> None:
    old = new = marked(state)
    for change in story:
        new = change(new)
        made = delta(old, new)
        assert apply(old, made) == new
        assert apply(old, through_json(made)) == new


@given(states, states)
def test_applying_the_difference_of_any_two_states_gives_the_second(old: AgentState, new: AgentState) -> None:
    for first in (old, marked(old), BLANK):
        made = delta(first, new)
        assert apply(first, made) == new
        assert apply(first, through_json(made)) == new


@given(states, states, states)
def test_what_apply_made_has_a_true_difference_to_every_other_state(
    a: AgentState, b: AgentState, c: AgentState
) -> None:
    old = marked(a)
    made = apply(old, delta(old, b))
    assert apply(old, delta(old, made)) == made
    assert apply(made, delta(made, c)) == c
    later = apply(marked(made), delta(marked(made), c))
    assert apply(old, delta(old, later)) == later


@given(states, st.lists(changes, max_size=4), states)
def test_a_copy_that_was_edited_by_hand_has_a_true_difference(
    state: AgentState, story: list[Change], other: AgentState
) -> None:
    old = new = marked(state)
    for change in story:
        new = change(new)
    edited = evolve(new, messages=other.messages, reasoning_steps=other.reasoning_steps)
    assert apply(old, delta(old, edited)) == edited


@given(states, st.lists(changes, max_size=6))
def test_a_difference_holds_what_was_added_and_not_what_was_there(state: AgentState, story: list[Change]) -> None:
    old = new = marked(state)
    for change in story:
        new = change(new)
    made = delta(old, new)
    for name, (keep, items) in made.grown.items():
        before, after = getattr(old, name), getattr(new, name)
        assert len(items) == len(after) - keep
        assert keep >= len(before) - (name == "reasoning_steps")
    assert not set(made.changed) & set(GROWING)
    # Metadata that is equal may still be other data: 1 == True.
    assert all(getattr(old, name) != value for name, value in made.changed.items() if name != "metadata")


#: Metadata as plugins keep it: tuples that grow, maps in maps, and values that are equal and not the same.
leaves = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0, "", "a", "\u00e4/"])
nested = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
)
keys = st.sampled_from(["a", "b", "c", ""])
edits = st.tuples(st.sampled_from(["set", "extend", "shorten", "drop"]), keys, nested)


def edited(metadata: Mapping[str, Any], edit: tuple[str, str, Any]) -> dict[str, Any]:
    what, key, value = edit
    made, before = dict(metadata), metadata.get(key)
    if what == "set":
        made[key] = value
    elif what == "extend" and isinstance(before, tuple):
        made[key] = (*before, value)
    elif what == "shorten" and isinstance(before, tuple):
        made[key] = before[:-1]
    elif what == "drop":
        made.pop(key, None)
    return made


@given(states, st.dictionaries(keys, nested, max_size=3), st.lists(edits, max_size=5))
def test_metadata_is_written_by_entry_and_tuples_by_what_they_grew(
    state: AgentState, metadata: dict[str, Any], story: list[tuple[str, str, Any]]
) -> None:
    old = marked(evolve(state, metadata=metadata))
    after: Mapping[str, Any] = old.metadata
    for each in story:
        after = edited(after, each)
    new = evolve(old, metadata=after)
    made = delta(old, new)
    for read in (made, through_json(made)):
        got = apply(old, read)
        assert got == new
        # 1 == True == 1.0, and neither is the other; entries are in the order of the live state
        assert repr(got.metadata) == repr(new.metadata)
        assert fold(old, [Transition(run_id="", node=START, next_node=END, delta=read)]) == new
    assert "metadata" not in made.changed
    # What is equal may be another object once it was frozen anew: a container that nobody edited may be written again.
    containers = {key for key, value in old.metadata.items() if isinstance(value, tuple | Mapping)}
    assert {*made.entries, *made.extended, *made.dropped} <= {key for _, key, _ in story} | containers
    # An entry that was dropped and set again is at the end.
    assert set(made.dropped) - set(made.entries) == set(old.metadata) - set(new.metadata)
    for key, items in made.extended.items():
        assert new.metadata[key] == old.metadata[key] + items
        assert old.metadata[key]
        assert items


@given(states)
def test_a_state_does_not_differ_from_itself(state: AgentState) -> None:
    assert delta(state, state) == StateDelta()
    assert delta(marked(state), state) == StateDelta()
    assert apply(state, StateDelta()) == state


# -- the fold ---------------------------------------------------------------------------------------


@given(stories, st.lists(moments, min_size=4, max_size=4), st.lists(bodies.filter(lambda b: type(b) is not Transition)))
def test_the_fold_over_a_journal_is_the_state_of_the_run(
    story: list[list[Change]], times: list[object], steps: list[Body]
) -> None:
    state, journal = BLANK, list[Body]()
    for number, (node, time) in enumerate(zip(story, times, strict=False)):
        old = new = state
        for change in node:
            new = change(new)
        made, state = advance(old, new, updated_at=time, active_seconds=float(number), iteration=number)  # type: ignore[arg-type]
        journal += [*steps, Transition(run_id="r", node="think", next_node="execute", delta=made)]
        assert fold(BLANK, journal) == state
    read = [entry_from_json(json.loads(json.dumps(entry_to_json(b), allow_nan=False))) for b in journal]
    assert fold(BLANK, read) == state
    for cut in range(len(journal) + 1):
        assert fold(fold(BLANK, journal[:cut]), journal[cut:]) == state


# -- entries ----------------------------------------------------------------------------------------


@given(bodies)
def test_an_entry_survives_json_and_pickling(body: Body) -> None:
    form = json.loads(json.dumps(entry_to_json(body), allow_nan=False))
    read = entry_from_json(form)
    assert read == body
    assert type(read) is type(body)
    assert entry_to_json(read) == form
    assert pickle.loads(pickle.dumps(body)) == body
