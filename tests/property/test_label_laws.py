"""The laws of labels: a join semilattice, and a run whose label only rises."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from locus.core import decode, encode
from locus.core.labels import CLEAN, LEVELS, Label
from locus.core.state import AgentState
from locus_testkit.strategies import growths, labels, states

LABELS = labels()


@given(LABELS, LABELS, LABELS)
def test_the_join_is_idempotent_commutative_and_associative(a: Label, b: Label, c: Label) -> None:
    assert a | a == a
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a | CLEAN == a


@given(LABELS, LABELS)
def test_a_join_is_above_both(a: Label, b: Label) -> None:
    joined = a | b
    assert joined | a == joined == joined | b
    assert LEVELS[joined.reads] == max(LEVELS[a.reads], LEVELS[b.reads])
    assert joined.sources == a.sources | b.sources


@given(LABELS)
def test_a_label_survives_json_and_pickling(label: Label) -> None:
    assert decode(encode(label), Label) == label
    assert pickle.loads(pickle.dumps(label)) == label


@given(states(), st.lists(growths(), max_size=8))
def test_whatever_happens_in_a_run_its_label_only_rises(state: AgentState, story: list[object]) -> None:
    for step in story:
        grown = step(state)  # type: ignore[operator]
        assert grown.label | state.label == grown.label
        for execution in grown.tool_executions[len(state.tool_executions) :]:
            assert grown.label | execution.known_label == grown.label
        state = grown


@given(states())
def test_the_next_turn_of_a_conversation_begins_with_its_label(state: AgentState) -> None:
    assert state.next_turn(run_id="r", now=state.updated_at).label == state.label
