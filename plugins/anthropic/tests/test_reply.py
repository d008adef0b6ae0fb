"""What an answer becomes: its usage, why it ended, and what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from locus.core.messages import ToolCall, Usage
from locus.models.protocol import ModelResponse, Price
from locus_plugin_anthropic.reply import check_message, response_of, usage_of
from locus_plugin_anthropic.stream import Stream
from locus_wire import Event, Malformed
from locus_wire.errors import BadAnswer
from locus_wire.streams import ErrorInAnswer

from .kit import at_once, message_of

CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"n": 1}}
TEXT = {"type": "text", "text": "So."}


def _response(*content: dict[str, Any], **more: Any) -> ModelResponse:
    message = message_of(*content, **more)
    return response_of(check_message(message), {}, usage_of(message), name="asked")


def _stream(*events: dict[str, Any]) -> Stream:
    stream = Stream()
    for event in events:
        at_once(stream.take(Event(json.dumps(event), event["type"])))
    return stream


def _start(**more: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {**message_of(), "stop_reason": None, **more}}


# -- usage -------------------------------------------------------------------------------------------


def test_prompt_counts_what_was_cached_and_what_was_written() -> None:
    usage = usage_of(
        message_of(
            usage={
                "input_tokens": 3,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "output_tokens": 7,
                "output_tokens_details": {"thinking_tokens": 4},
            }
        )
    )
    assert usage == Usage(
        prompt_tokens=123, completion_tokens=7, cached_tokens=100, cache_write_tokens=20, reasoning_tokens=4
    )
    # Then each token has the price of its kind.
    assert Price(prompt=1e6, completion=1e6, cached=1e5, cache_write=2e6).of(usage) == 3 + 10 + 40 + 7


@pytest.mark.parametrize(
    "told", [None, [], {"input_tokens": None}, {"input_tokens": -1}, {"input_tokens": True}, {"input_tokens": "9"}]
)
def test_counts_that_make_no_sense_count_nothing(told: Any) -> None:
    assert usage_of({"usage": told}) == Usage()


def test_totals_of_a_stream_replace_those_of_its_beginning() -> None:
    stream = _stream(
        _start(usage={"input_tokens": 9, "cache_read_input_tokens": 50, "output_tokens": 1}),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 11, "output_tokens": 6}, "x_new": 1},
        {"type": "message_stop"},
    )
    assert (stream.message["stop_reason"], stream.message["x_new"]) == ("end_turn", 1)
    assert usage_of(stream.message) == Usage(prompt_tokens=61, completion_tokens=6, cached_tokens=50)


# -- how it ended ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "content", "expected"),
    [
        ("end_turn", TEXT, "stop"),
        ("stop_sequence", TEXT, "stop"),
        ("tool_use", CALL, "tool_calls"),
        ("end_turn", CALL, "tool_calls"),
        ("tool_use", TEXT, "stop"),
        ("max_tokens", TEXT, "length"),
        ("model_context_window_exceeded", TEXT, "length"),
        ("refusal", TEXT, "refusal"),
        ("pause_turn", TEXT, "other"),
        ("of_the_future", TEXT, "other"),
        ("of_the_future", CALL, "tool_calls"),
    ],
)
def test_stop_reasons(reason: str, content: dict[str, Any], expected: str) -> None:
    assert _response(content, stop_reason=reason).stop_reason == expected


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_call_in_which_the_answer_was_cut_off_is_not_made(reason: str) -> None:
    (whole, cut) = _response(CALL, {**CALL, "id": "toolu_2"}, stop_reason=reason).tool_calls
    assert whole == ToolCall("toolu_1", "look", {"n": 1})
    assert cut == ToolCall("toolu_2", "look", malformed='{"n": 1}')


def test_call_before_the_end_that_was_cut_is_made() -> None:
    assert _response(CALL, TEXT, stop_reason="max_tokens").tool_calls[0].malformed is None


def test_refused_answer_asks_for_nothing() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    response = _response(TEXT, CALL, stop_reason="refusal", stop_details=details)
    assert response.tool_calls == ()
    assert response.stop_reason == "refusal"
    assert response.message.extras["anthropic"]["stop_details"]["explanation"] == "No."


def test_model_that_answered_is_named() -> None:
    assert _response(TEXT, model="claude-x").model == "claude-x"
    assert _response(TEXT, model=None).model == "asked"


# -- calls -------------------------------------------------------------------------------------------


def test_calls_get_ids_of_their_own() -> None:
    nameless = {"type": "tool_use", "name": "look", "input": {}}
    ids = [call.id for call in _response(CALL, CALL, nameless, {**CALL, "id": None}).tool_calls]
    assert ids[0] == "toolu_1"
    assert len(set(ids)) == 4
    assert all(ids)


@pytest.mark.parametrize("given", [[1], "text", None, 3])
def test_arguments_that_are_not_an_object_are_malformed(given: Any) -> None:
    (call,) = _response({**CALL, "input": given}).tool_calls
    assert call.malformed == json.dumps(given)


@pytest.mark.parametrize("text", ['{"n": ', "[1]", "null", '{"n": 1}}', '{"n": NaN}'])
def test_streamed_arguments_that_are_not_an_object_are_malformed(text: str) -> None:
    stream = _stream(
        _start(),
        {"type": "content_block_start", "index": 0, "content_block": {**TEXT, "text": ""}},
        {"type": "content_block_start", "index": 1, "content_block": {**CALL, "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": text}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_stop"},
    )
    response = response_of(stream.message, stream.raw, Usage(), name="m")
    assert response.tool_calls == (ToolCall("toolu_1", "look", malformed=text),)


def test_arguments_are_whole_also_where_the_server_forgets_to_say_so() -> None:
    stream = _stream(
        _start(),
        {"type": "content_block_start", "index": 0, "content_block": {**CALL, "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"n": 2}'}},
        {"type": "message_stop"},
    )
    assert stream.message["content"] == [{**CALL, "input": {"n": 2}}]


# -- what is no answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        *(None, [], "x", {}, {"content": "x"}, {"content": [1]}, {"choices": []}),
        *({"content": [{}]}, {"content": [{"type": []}]}, {"content": [], "stop_reason": ["x"]}),
    ],
)
def test_what_is_not_a_message_is_refused(data: Any) -> None:
    with pytest.raises(Malformed):
        check_message(data)


def _deep(levels: int) -> Any:
    made: Any = 0
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    "block",
    [
        {**CALL, "input": {"n": float("nan")}},
        {"type": "of_the_future", "n": float("inf")},
        {**CALL, "input": {"n": _deep(5000)}},
    ],
    ids=["no number", "infinite", "deep"],
)
def test_what_no_journal_could_hold_is_a_bad_answer(block: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer) as caught:
        _response(block)
    assert caught.value.retryable


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "content_block_start", "index": 0, "content_block": TEXT}],
        [{"type": "message_start"}],
        [_start(), {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}],
        [_start(), *[{"type": "content_block_start", "index": 0, "content_block": TEXT}] * 2],
        [_start(), {"type": "content_block_start", "index": 0, "content_block": "x"}],
        [_start(), {"type": "message_delta", "delta": None}],
        [{"type": "message_stop"}],
    ],
)
def test_events_that_make_no_sense_are_refused(events: list[dict[str, Any]]) -> None:
    with pytest.raises(Malformed):
        _stream(*events)


def test_failure_in_the_middle_of_a_stream_is_reported() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ErrorInAnswer):
        _stream(_start(), error)


def test_unknown_events_and_deltas_do_no_harm() -> None:
    stream = _stream(
        _start(),
        {"type": "ping"},
        {"type": "of_the_future", "index": 7},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "b", "n": 1}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    )
    assert stream.message["content"] == [{"type": "compaction", "content": "ab", "n": 1}]
