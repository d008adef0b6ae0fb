"""`Fold` makes of many changes what applying them one by one makes."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import CheckpointError
from locus.core.frozen import FrozenDict
from locus.core.journal import BLANK, Fold, StateDelta, Transition, apply, fold

texts = st.text("ab", max_size=2)
grown = st.lists(texts, max_size=3).map(tuple)
fields = st.sampled_from(("tool_history", "errors"))
changes = st.builds(
    StateDelta,
    st.one_of(
        st.just({}),
        st.fixed_dictionaries({"iteration": st.integers(0, 9)}),
        st.fixed_dictionaries({"errors": grown}),
    ),
    st.dictionaries(fields, st.tuples(st.integers(0, 6), grown), max_size=2),
    st.dictionaries(texts, grown, max_size=2).map(FrozenDict),
    st.dictionaries(texts, grown, max_size=1).map(FrozenDict),
    st.lists(texts, max_size=1).map(tuple),
)


@given(st.lists(changes, max_size=8))
def test_many_changes_make_what_they_make_one_by_one(all_of_them: list[StateDelta]) -> None:
    folded, expected = Fold(BLANK), BLANK
    for change in all_of_them:
        try:
            expected = apply(expected, change)
        except CheckpointError:
            with pytest.raises(CheckpointError):
                folded.add(change)
            return
        folded.add(change)
        for name in ("tool_history", "errors", "messages"):
            assert folded.length(name) == len(getattr(expected, name))
    assert folded.state() == expected
    assert list(folded.state().metadata) == list(expected.metadata)


def test_the_state_before_stays_what_it_was() -> None:
    start = apply(BLANK, StateDelta(grown={"errors": (0, ("a", "b"))}, entries=FrozenDict(k=("x",))))
    steps = [StateDelta(grown={"errors": (1, ("c",))}, extended=FrozenDict(k=("y",))) for _ in range(3)]
    made = [Transition(run_id="r", node="think", next_node="execute", delta=each) for each in steps]

    assert fold(start, made) == reduce(apply, steps, start)
    assert (start.errors, start.metadata) == (("a", "b"), {"k": ("x",)})
    assert fold(start, []) is start
