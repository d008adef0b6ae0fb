"""Whatever a server sends for a tool call becomes one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.messages import ToolCall
from locus_wire.calls import CallPieces, arguments_of, tool_call, unique_ids

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)


@given(st.lists(ARGUMENTS, min_size=1, max_size=4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_pieces_make_the_calls_that_were_cut(given_arguments: list[dict[str, Any]], size: int, order: Any) -> None:
    texts = [json.dumps(each) for each in given_arguments]
    queues = [[text[at : at + size] for at in range(0, len(text), size)] for text in texts]
    pieces = CallPieces.empty()
    for index in range(len(texts)):
        pieces.add(index, f"id-{index}", f"tool_{index}", None)
    while any(queues):
        index = order.choice([i for i, queue in enumerate(queues) if queue])
        pieces.add(index, None, None, queues[index].pop(0))
    calls = pieces.calls()
    assert [dict(call.arguments) for call in calls] == given_arguments
    assert [call.id for call in calls] == [f"id-{i}" for i in range(len(texts))]
    assert [call.name for call in calls] == [f"tool_{i}" for i in range(len(texts))]


def test_calls_with_one_index_are_told_apart_by_their_ids() -> None:
    pieces = CallPieces.empty()
    pieces.add(0, "a", "f", '{"x":')
    pieces.add(0, None, None, "1}")
    pieces.add(0, "b", "f", '{"x":2}')
    assert [(call.id, call.arguments["x"]) for call in pieces.calls()] == [("a", 1), ("b", 2)]


def test_a_name_that_is_repeated_with_each_piece_is_one_name() -> None:
    pieces = CallPieces.empty()
    for text in ("{", "}"):
        pieces.add(0, "a", "find", text)
    assert pieces.calls() == (ToolCall("a", "find"),)


@pytest.mark.parametrize("text", ["{", "[1]", "5", '"x"', "null", '{"a": NaN}', '{"a": -1e999}', "{}{}", "[" * 100_000])
def test_arguments_that_are_no_object_are_kept_as_they_came(text: str) -> None:
    call = tool_call("a", "f", text)
    assert (call.malformed, dict(call.arguments)) == (text, {})


@pytest.mark.parametrize("nothing", [None, "", {}, "{}"])
def test_no_arguments_are_no_mistake(nothing: object) -> None:
    assert tool_call("a", "f", nothing) == ToolCall("a", "f")


def test_arguments_that_are_an_object_already_are_taken() -> None:
    assert arguments_of({"a": [1]}) == {"a": [1]}
    assert tool_call("a", "f", [1]).malformed == "[1]"


@given(st.lists(st.sampled_from(["", "a", "b", "a_1", "call_0"]), max_size=6))
def test_ids_of_a_turn_differ_and_those_that_did_stay(ids: list[str]) -> None:
    made = unique_ids(ToolCall(each, "f") for each in ids)
    assert len({call.id for call in made}) == len(ids)
    assert all(call.id for call in made)
    for number, each in enumerate(ids):
        if each and each not in ids[:number]:
            assert made[number].id == each
    assert unique_ids(made) == made
