"""Reducers: what two branches of a graph become, and the laws that let a graph group branches as it likes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus_plugin_reducers as reducers
from locus.core import FrozenDict
from locus.core.messages import Message, Role
from locus_plugin_reducers import (
    Reducer,
    add_messages,
    add_numbers,
    append_list,
    deep_merge_dict,
    first_value,
    last_value,
    max_value,
    merge_dict,
    min_value,
    set_union,
    unique_append_list,
)

messages = st.builds(Message, st.sampled_from(Role), st.text(max_size=3))
small = st.integers(-3, 3)
keys = st.sampled_from("abc")
# A key that starts with "d" holds a mapping in every branch, so that deep merging is associative.
deep: st.SearchStrategy[Mapping[str, Any]] = st.recursive(
    st.dictionaries(keys, small, max_size=3),
    lambda inner: st.builds(
        lambda flat, nested: {**flat, **nested},
        st.dictionaries(keys, small, max_size=2),
        st.dictionaries(st.sampled_from(["d1", "d2"]), inner, max_size=2),
    ),
    max_leaves=4,
)
lists = st.lists(small, max_size=4)

VALUES: dict[Reducer, st.SearchStrategy[Any]] = {
    add_messages: st.lists(messages, max_size=3).map(tuple),
    merge_dict: st.dictionaries(keys, small, max_size=3) | st.dictionaries(keys, small, max_size=3).map(FrozenDict),
    deep_merge_dict: deep,
    append_list: lists | lists.map(tuple),
    unique_append_list: lists | lists.map(tuple) | st.lists(lists, max_size=3),
    add_numbers: st.integers(),
    max_value: st.text(max_size=2),
    min_value: st.floats(allow_nan=False),
    first_value: small,
    last_value: small,
    set_union: st.frozensets(small, max_size=4),
}
each = pytest.mark.parametrize("reducer", VALUES, ids=lambda r: r.__name__)


def test_every_reducer_has_laws() -> None:
    assert {r.__name__ for r in VALUES} == set(reducers.__all__) - {"Reducer"}  # type: ignore[attr-defined]


def test_all_of_them_are_found_under_the_fixed_import_path() -> None:
    fixed = importlib.import_module("locus.core.reducers")

    assert [getattr(fixed, name) for name in reducers.__all__] == [getattr(reducers, name) for name in reducers.__all__]


@each
@given(data=st.data())
def test_grouping_does_not_matter(reducer: Reducer, data: st.DataObject) -> None:
    a, b, c = (data.draw(st.none() | VALUES[reducer]) for _ in range(3))
    assert reducer(reducer(a, b), c) == reducer(a, reducer(b, c))


@each
@given(data=st.data())
def test_a_branch_with_nothing_to_say_changes_nothing(reducer: Reducer, data: st.DataObject) -> None:
    value = data.draw(VALUES[reducer])
    assert reducer(None, value) == value
    assert reducer(value, None) == value
    assert not reducer(None, None)


@each
@given(data=st.data())
def test_the_arguments_stay_as_they_are(reducer: Reducer, data: st.DataObject) -> None:
    a, b = data.draw(VALUES[reducer]), data.draw(VALUES[reducer])
    shown = repr((a, b))
    reducer(a, b)
    assert repr((a, b)) == shown


def test_messages_are_a_tuple_whatever_they_came_in() -> None:
    hello, bye = Message(Role.USER, "hello"), Message(Role.ASSISTANT, "bye")
    assert add_messages((hello,), [bye]) == (hello, bye)
    assert add_messages((hello,), bye) == (hello, bye)
    assert add_messages(None, None) == ()


def test_the_right_branch_wins_a_key() -> None:
    assert merge_dict({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert merge_dict({"a": {"x": 1}}, {"a": {"y": 2}}) == {"a": {"y": 2}}


def test_mappings_under_one_key_are_merged_in_turn() -> None:
    assert deep_merge_dict({"a": {"x": 1, "y": 1}}, {"a": {"y": 2}, "b": 3}) == {"a": {"x": 1, "y": 2}, "b": 3}
    assert deep_merge_dict({"a": {"x": 1}}, {"a": 2}) == {"a": 2}


def test_a_frozen_mapping_stays_frozen() -> None:
    frozen = FrozenDict({"a": FrozenDict({"x": 1})})
    merged = deep_merge_dict(frozen, {"a": {"y": 2}})
    assert isinstance(merge_dict(frozen, {"b": 1}), FrozenDict)
    assert isinstance(merged, FrozenDict)
    assert isinstance(merged["a"], FrozenDict)


def test_a_list_takes_the_type_of_the_left_branch() -> None:
    assert append_list((1,), [1, 2]) == (1, 1, 2)
    assert append_list([1], (2,)) == [1, 2]


def test_items_that_are_there_already_are_not_added_again() -> None:
    assert unique_append_list([1, 2], [2, 3, 3]) == [1, 2, 3]
    assert unique_append_list([{"a": 1}], [{"a": 1}, {"a": 2}]) == [{"a": 1}, {"a": 2}]
    assert unique_append_list([{"a": 1}], [FrozenDict({"a": 1})]) == [{"a": 1}]


def test_numbers_extremes_and_sides() -> None:
    assert add_numbers(2, 0) == 2
    assert (max_value(1, 2), min_value(1, 2)) == (2, 1)
    assert (first_value(0, 1), last_value(1, 0)) == (0, 0)


def test_sets_are_united_and_frozen() -> None:
    united = set_union({1}, frozenset({2}))
    assert united == frozenset({1, 2})
    assert isinstance(united, frozenset)
