"""Whatever a server sends for a tool call becomes one."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.messages import ToolCall
from locus.models.protocol import Chunk
from locus_wire.calls import arguments_of, tool_call, unique_ids
from locus_wire.chat_completions import _StreamedAnswer
from locus_wire.options import Options
from locus_wire.streams import Event

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)


def stream(*pieces: dict[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of a stream of Chat Completions."""

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk.text)

    async def read() -> tuple[ToolCall, ...]:
        answer = _StreamedAnswer(Options(provider="acme", model="m"), listen)
        for piece in pieces:
            await answer.take(Event(json.dumps({"choices": [{"delta": {"tool_calls": [piece]}}]})))
        assert await answer.take(Event("[DONE]"))
        return answer.response().tool_calls

    heard: list[str] = []
    calls = anyio.run(read)
    assert "".join(heard) == "".join(piece["function"].get("arguments", "") for piece in pieces)
    return calls


@given(st.lists(ARGUMENTS, min_size=1, max_size=4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_pieces_make_the_calls_that_were_cut(given_arguments: list[dict[str, Any]], size: int, order: Any) -> None:
    texts = [json.dumps(each) for each in given_arguments]
    queues = [[text[at : at + size] for at in range(0, len(text), size)] for text in texts]
    pieces: list[dict[str, Any]] = [
        {"index": index, "id": f"id-{index}", "function": {"name": f"tool_{index}"}} for index in range(len(texts))
    ]
    while any(queues):
        index = order.choice([i for i, queue in enumerate(queues) if queue])
        pieces.append({"index": index, "function": {"arguments": queues[index].pop(0)}})
    calls = stream(*pieces)
    assert [dict(call.arguments) for call in calls] == given_arguments
    assert [call.id for call in calls] == [f"id-{i}" for i in range(len(texts))]
    assert [call.name for call in calls] == [f"tool_{i}" for i in range(len(texts))]


@pytest.mark.parametrize("index", [{"index": 0}, {}], ids=["index 0", "no index"])
def test_calls_with_one_index_are_distinguished_by_their_ids(index: dict[str, int]) -> None:
    calls = stream(
        {**index, "id": "a", "function": {"name": "f", "arguments": '{"x":'}},
        {**index, "function": {"arguments": "1}"}},
        {**index, "id": "b", "function": {"name": "f", "arguments": '{"x":2}'}},
    )
    assert [(call.id, call.arguments["x"]) for call in calls] == [("a", 1), ("b", 2)]


def test_a_name_that_is_repeated_with_each_piece_is_one_name() -> None:
    pieces = [{"index": 0, "id": "a", "function": {"name": "find", "arguments": text}} for text in ("{", "}")]
    assert stream(*pieces) == (ToolCall("a", "find"),)


@pytest.mark.parametrize("text", ["{", "[1]", "5", '"x"', "null", '{"a": NaN}', '{"a": -1e999}', "{}{}", "[" * 100_000])
def test_arguments_that_are_not_an_object_are_kept_as_they_came(text: str) -> None:
    call = tool_call("a", "f", text)
    assert (call.malformed, dict(call.arguments)) == (text, {})


@pytest.mark.parametrize("nothing", [None, "", {}, "{}"])
def test_no_arguments_are_not_a_mistake(nothing: object) -> None:
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
