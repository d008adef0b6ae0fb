"""What the server said goes back as it came, however it was cut into lines and bytes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.codec import decode, encode
from locus.core.frozen import freeze
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models.protocol import ModelRequest, ModelResponse
from locus_plugin_ollama.answers import Answer
from locus_plugin_ollama.messages import encode_messages, turn_of
from locus_plugin_ollama.request import body_of
from locus_plugin_ollama.settings import OllamaSettings
from locus_wire import Malformed, check_shape
from locus_wire.streams import LineParser

from .emulator import final, message_of

_BODY = {"model": "tiny", "messages": [{}]}
_KNOWN = ("role", "content", "thinking", "tool_calls")

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)
_odd = st.dictionaries(
    _text.filter(lambda name: name not in {*_KNOWN, "id", "function", "name", "arguments"}), _json, max_size=2
)
_function = st.builds(
    lambda name, arguments, more: {**more, "name": name, "arguments": arguments},
    _text.filter(bool),
    st.dictionaries(_text, _json, max_size=3)
    | st.builds(json.dumps, st.dictionaries(_text, _json))
    | _text
    | st.none(),
    _odd,
)
_call = st.builds(
    lambda function, ids, more: {**more, **ids, "function": function},
    _function,
    st.fixed_dictionaries({}, optional={"id": st.sampled_from(["call_1", "call_2", "call_3"])}),
    _odd,
)
_turn = st.builds(
    lambda known, more: {**more, "role": "assistant", **known},
    st.fixed_dictionaries(
        {"content": _text},
        optional={"thinking": _text.filter(bool), "tool_calls": st.lists(_call, min_size=1, max_size=3)},
    ),
    _odd,
)


def whole(message: dict[str, Any], **more: Any) -> ModelResponse:
    answer = Answer("tiny", 1)
    answer.add({**final(_BODY, message), "message": message, **more})
    return answer.response()


def stream_of(data: bytes, cuts: list[int]) -> ModelResponse:
    parser, answer = LineParser(10**6), Answer("tiny", 1)
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(bounds):
        for event in parser.feed(data[start:end]):
            answer.add(json.loads(event.data))
    return answer.response()


@pytest.mark.proof
@given(_turn)
def test_a_turn_goes_back_as_it_came_unknown_fields_included(message: dict[str, Any]) -> None:
    response = whole(message)

    assert json.loads(encode_messages([response.message])[0]) == message
    kept = decode(json.loads(json.dumps(encode(response.message))), Message)
    assert encode_messages([kept]) == encode_messages([response.message]), (
        "also when it has been through a journal, to the byte"
    )


@pytest.mark.proof
@given(_turn, st.data())
def test_an_answer_in_lines_is_the_whole_answer_wherever_it_is_cut(
    message: dict[str, Any], data: st.DataObject
) -> None:
    def pieces(text: str) -> list[str]:
        at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=3)))
        return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]

    said: list[dict[str, Any]] = [{"thinking": piece} for piece in pieces(message.get("thinking", ""))]
    said += [{"content": piece} for piece in pieces(message["content"])]
    said += [{"content": "", "tool_calls": [call]} for call in message.get("tool_calls", ())]
    said.append({key: value for key, value in message.items() if key not in _KNOWN})
    ending = final(_BODY, message)
    head = {"model": "tiny", "created_at": "earlier", "done": False}
    stream = [{**head, "message": {"role": "assistant", **part}} for part in said]
    stream.append({**ending, "message": {"role": "assistant", "content": ""}})
    wire = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in stream)

    assert stream_of(wire, data.draw(st.lists(st.integers(0, 10_000), max_size=8))) == whole(message)


@pytest.mark.proof
@given(st.lists(_turn, min_size=1, max_size=4))
def test_every_request_begins_with_the_bytes_of_the_one_before(turns: list[dict[str, Any]]) -> None:
    messages = [Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "Hi.")]
    before = b""
    for turn in turns:
        body = body_of(ModelRequest(messages=tuple(messages)), "tiny", OllamaSettings(), stream=True)
        assert body.startswith(before)
        before = body[: body.rindex(b"]", 0, body.rindex(b',"model":"tiny"') + 1)]
        messages += [whole(turn).message, Message(Role.USER, "Go on.")]


def test_a_message_is_encoded_once() -> None:
    message = whole(message_of("pong")).message

    assert encode_messages([message])[0] is encode_messages([message])[0]


def test_a_turn_that_was_changed_since_goes_back_as_changed() -> None:
    message = whole({"role": "assistant", "content": "the key is 123", "mood": "calm"}).message
    changed = Message(Role.ASSISTANT, "the key is ***", extras=message.extras)

    assert turn_of(changed) == {"role": "assistant", "content": "the key is ***", "mood": "calm"}


def test_arguments_that_were_changed_since_go_back_as_changed() -> None:
    raw = {"function": {"name": "look", "arguments": '{"at": "sea"}'}}
    (call,) = whole({"role": "assistant", "content": "", "tool_calls": [raw]}).tool_calls
    assert call.arguments == {"at": "sea"}
    changed = ToolCall(call.id, call.name, {"at": "land"}, extras=call.extras)

    wire = turn_of(Message(Role.ASSISTANT, changed))

    assert wire["tool_calls"] == [{"function": {"name": "look", "arguments": {"at": "land"}}}]


# ----------------------------------------------------------------- what is read


def test_calls_get_ids_that_differ_and_stay_the_same() -> None:
    calls = [{"function": {"name": "look", "arguments": {}}}] * 2
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    first, second = whole(message).tool_calls
    later = whole(message, created_at="2026-03-01T09:31:00Z").tool_calls

    assert first.id
    assert len({first.id, second.id, *(call.id for call in later)}) == 4
    assert whole(message).tool_calls == (first, second)


def test_ids_of_the_server_are_kept_and_distinguished() -> None:
    calls = [{"id": "call_9", "function": {"name": "look", "arguments": {"n": n}}} for n in range(2)]

    response = whole({"role": "assistant", "content": "", "tool_calls": calls})

    assert response.tool_calls[0].id == "call_9"
    assert response.tool_calls[1].id != "call_9"
    assert [call["id"] for call in turn_of(response.message)["tool_calls"]] == ["call_9", "call_9"]


def test_arguments_that_are_not_an_object_are_a_malformed_call() -> None:
    calls = [{"function": {"name": "look", "arguments": text}} for text in ("{oops", [1], "[1]")]

    found = whole({"role": "assistant", "content": "", "tool_calls": calls}).tool_calls

    assert [call.malformed for call in found] == ["{oops", "[1]", "[1]"]


@pytest.mark.parametrize(
    ("reason", "calls", "stop"),
    [
        ("stop", 0, "stop"),
        (None, 0, "stop"),
        ("stop", 1, "tool_calls"),
        ("length", 0, "length"),
        ("length", 1, "length"),
        ("load", 0, "other"),
        ("unload", 0, "other"),
        ("something new", 0, "other"),
    ],
)
def test_why_the_model_stopped_is_reported(reason: str | None, calls: int, stop: str) -> None:
    message = message_of(["x", *[ToolCall("", "look")] * calls])

    assert whole(message, done_reason=reason).stop_reason == stop


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_eval_count": 26, "eval_count": 298}, Usage(prompt_tokens=26, completion_tokens=298)),
        ({"prompt_eval_count": None, "eval_count": 3}, Usage(completion_tokens=3)),
        (
            {"prompt_eval_count": 26, "prompt_eval_cached_count": 20, "eval_count": 1},
            Usage(prompt_tokens=26, cached_tokens=20, completion_tokens=1),
        ),
        (
            {"prompt_eval_count": None, "prompt_eval_cached_count": 20, "eval_count": 1},
            Usage(prompt_tokens=20, cached_tokens=20, completion_tokens=1),
        ),
    ],
)
def test_usage_is_counted_also_where_a_count_is_missing(counts: dict[str, Any], usage: Usage) -> None:
    assert whole(message_of("x"), **counts).usage == usage


def test_what_else_the_answer_says_is_kept() -> None:
    response = whole(message_of("x"), remote_model="big", logprobs=[{"token": "x"}])

    kept = response.message.extras["ollama"]["response"]
    assert (kept["remote_model"], kept["logprobs"]) == ("big", freeze([{"token": "x"}]))
    assert kept["total_duration"] == 4_883_583_458
    assert turn_of(response.message) == {"role": "assistant", "content": "x"}, "it is no part of the turn"


def test_lists_grow_line_by_line() -> None:
    answer = Answer("tiny", 1)
    answer.add({"message": {"role": "assistant", "content": "a"}, "logprobs": [1], "done": False})
    answer.add({"message": {"role": "assistant", "content": "b"}, "logprobs": [2], "done": True})

    assert answer.response().message.extras["ollama"]["response"]["logprobs"] == (1, 2)


def test_thinking_comes_before_the_text() -> None:
    answer = Answer("tiny", 1)
    heard = answer.add({"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False})
    heard += answer.add({"message": {"role": "assistant", "content": "So."}, "done": True})

    assert [(chunk.kind, chunk.text) for chunk in heard] == [("reasoning", "hm"), ("text", "So.")]
    assert answer.response().message.content == (ThinkingBlock("hm"), TextBlock("So."))


SPOILT: dict[str, dict[str, Any]] = {
    "no message before the end": {"message": None, "done": False},
    "no end": {"done": False},
    "an end that is no truth value": {"done": 1},
    "a message that is text": {"message": "text"},
    "content that is a number": {"message": {"content": 5}},
    "thinking that is a list": {"message": {"content": "", "thinking": ["a"]}},
    "calls that are a number": {"message": {"content": "", "tool_calls": 7}},
    "a call that is text": {"message": {"content": "", "tool_calls": ["x"]}},
    "a call of nothing": {"message": {"content": "", "tool_calls": [{}]}},
    "a call without a name": {"message": {"content": "", "tool_calls": [{"function": {"name": None}}]}},
    "a count in words": {"eval_count": "many"},
    "a count that is a truth value": {"eval_count": True},
    "a reason that is a number": {"done_reason": 1},
}


@pytest.mark.parametrize("wrong", SPOILT.values(), ids=SPOILT)
def test_an_answer_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Malformed), check_shape():
        whole(message_of("x"), **wrong)
