"""A step's id is written and read in one place, and no name that somebody chooses reads as the id of another step."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from locus.core.errors import CheckpointError
from locus.core.journal import CALL, CHILD, EXECUTE, REVIEW, STEP, THINK, StepId

KINDS = (THINK, EXECUTE, CALL, STEP, REVIEW, CHILD)

#: Names of the kind that could be taken for parts of an id, and any others.
names = st.text() | st.text(alphabet="/#:?%0123456789aexecutstp") | st.sampled_from(["0/execute/1#2", "/step/0", "%2F"])
counts = st.integers(0, 3) | st.integers(0, 10**9)
nodes = st.sampled_from(KINDS) | names.filter(bool)


def step_ids(parents: st.SearchStrategy[StepId | None]) -> st.SearchStrategy[StepId]:
    made = st.builds(StepId, counts, nodes, counts, counts, names, parents)
    # What is inside of a step belongs to its iteration.
    return made.map(
        lambda s: s if s.parent is None else StepId(s.parent.iteration, s.node, s.ordinal, s.attempt, s.name, s.parent)
    )


ids = st.recursive(step_ids(st.none()), step_ids, max_leaves=4)


@given(ids)
def test_the_text_of_a_step_id_is_read_as_the_same_id(step_id: StepId) -> None:
    assert StepId.parse(str(step_id)) == step_id


@given(ids, ids)
def test_two_ids_have_one_text_only_when_they_are_equal(one: StepId, other: StepId) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(names)
def test_another_text_is_its_own_id_or_invalid(text: str) -> None:
    try:
        step_id = StepId.parse(text)
    except CheckpointError:
        return
    assert str(step_id) == text


@given(counts, names, st.text("0123456789abcdef", min_size=1), counts, ids)
def test_no_purpose_imitates_another_step(
    iteration: int, purpose: str, question: str, times: int, other: StepId
) -> None:
    call = StepId.of_call(iteration, purpose, question, times)
    assert StepId.parse(str(call)) == call
    assert call.purpose == purpose
    assume(other.node != CALL)
    assert str(call) != str(other)


@given(ids, names, names, counts)
def test_no_name_of_a_step_imitates_one_outside_of_its_body(body: StepId, name: str, node: str, ordinal: int) -> None:
    inner = body.inner(STEP, ordinal, name)
    read = StepId.parse(str(inner))
    assert (read.parent, read.node, read.name, read.root) == (body, STEP, name, body.root)
    assert str(inner) != str(StepId(body.iteration, STEP, ordinal, name=name))


@pytest.mark.parametrize(
    "text", ["", "0", "0/", "0//1", "00/think/0", "0/think/00", "0/think/0#0", "0/think/0:", "0/think", "-1/think/0"]
)
def test_what_nothing_writes_is_refused(text: str) -> None:
    with pytest.raises(CheckpointError):
        StepId.parse(text)
