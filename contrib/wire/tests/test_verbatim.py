"""What a server said is what it gets back, fields that nobody knows included, through a checkpoint as well."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from locus.core import codec
from locus.core.messages import MediaBlock, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus_wire import chat_completions, chat_history, response_items, responses
from locus_wire.options import Options

OPTIONS = Options(provider="acme", model="m")

NAMES = st.text("abcxyz_", min_size=1, max_size=6)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(NAMES.map("new_{}".format), DATA, max_size=3)
ARGUMENTS = st.one_of(
    st.dictionaries(NAMES, DATA, max_size=3).map(json.dumps),
    st.dictionaries(NAMES, DATA, max_size=3).map(lambda d: json.dumps(d, separators=(",", ":"), ensure_ascii=False)),
    st.sampled_from(["", "{}", "{", "[]", '{ "a" : 1.0e0 }', "null"]),
)


def again(message: Message) -> Message:
    """The message as it comes out of a checkpoint."""
    return codec.decode(json.loads(json.dumps(codec.encode(message))), Message)


@st.composite
def chat_messages(draw: st.DrawFn) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", **draw(UNKNOWN)}
    optional = {
        "content": st.none()
        | TEXT
        | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=2),
        "refusal": st.none() | TEXT,
        "reasoning_content": st.none() | TEXT,
        "reasoning": st.none() | TEXT,
        "reasoning_details": st.lists(UNKNOWN, max_size=2),
        "annotations": st.just([]),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            said[name] = draw(values)
    if draw(st.booleans()):
        ids = draw(st.lists(NAMES, unique=True, max_size=3))
        said["tool_calls"] = [
            {
                "id": each,
                "type": "function",
                **draw(UNKNOWN),
                "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS), **draw(UNKNOWN)},
            }
            for each in ids
        ]
    return said


@given(chat_messages())
def test_a_chat_turn_goes_back_as_it_came(said: dict[str, Any]) -> None:
    message = chat_history.read_message(said, "acme")
    for given_back in (message, again(message)):
        (sent,) = chat_history.conversation([given_back], OPTIONS)
        assert json.loads(sent) == said


@given(chat_messages(), st.text("abc", min_size=1))
def test_a_chat_turn_that_a_hook_has_changed_says_what_it_says_now(said: dict[str, Any], text: str) -> None:
    message = chat_history.read_message(said, "acme")
    blocks = [b for b in message.content if not isinstance(b, TextBlock)]
    changed = evolve(message, content=(*blocks, TextBlock(f"changed {text}")))
    (sent,) = chat_history.conversation([changed], OPTIONS)
    made = json.loads(sent)
    assert made["content"] == f"changed {text}"
    assert [c["id"] for c in made.get("tool_calls") or []] == [c.id for c in message.tool_calls]


@given(chat_messages())
def test_a_chat_turn_of_another_provider_is_only_what_it_says(said: dict[str, Any]) -> None:
    message = chat_history.read_message(said, "another")
    (sent,) = chat_history.conversation([message], OPTIONS)
    assert json.loads(sent).keys() <= {"role", "content", "tool_calls", "refusal"}


ITEMS = st.one_of(
    st.builds(
        lambda new, parts: {"type": "message", "role": "assistant", "id": "m", **new, "content": parts},
        UNKNOWN,
        st.lists(
            st.one_of(
                st.builds(lambda t, new: {"type": "output_text", "text": t, "annotations": [], **new}, TEXT, UNKNOWN),
                st.builds(lambda t: {"type": "refusal", "refusal": t}, TEXT),
                st.builds(lambda new: {"type": "output_hologram", **new}, UNKNOWN),
            ),
            min_size=1,
            max_size=3,
        ),
    ),
    st.builds(
        lambda new, parts, signature: {"type": "reasoning", "summary": parts, **signature, **new},
        UNKNOWN,
        st.lists(st.builds(lambda t: {"type": "summary_text", "text": t}, TEXT), max_size=3),
        st.sampled_from([{}, {"encrypted_content": None}, {"encrypted_content": "gAAA"}]),
    ),
    st.builds(lambda new: {"type": "web_search_call", "id": "ws", **new}, UNKNOWN),
)
CALLS = st.builds(
    lambda name, arguments, new: {"type": "function_call", "name": name, "arguments": arguments, **new},
    NAMES,
    ARGUMENTS,
    UNKNOWN,
)


@given(st.lists(ITEMS | CALLS, max_size=5))
def test_output_items_go_back_as_they_came(items: list[dict[str, Any]]) -> None:
    items = [{**e, "call_id": f"c{at}"} if e["type"] == "function_call" else e for at, e in enumerate(items)]
    message = Message(Role.ASSISTANT, response_items.blocks_of(items, "acme"))
    for given_back in (message, again(message)):
        assert [json.loads(item) for item in response_items.conversation([given_back], OPTIONS)] == items


@given(st.lists(ITEMS | CALLS, max_size=5))
def test_output_items_of_another_provider_are_only_what_they_say(items: list[dict[str, Any]]) -> None:
    items = [{**e, "call_id": f"c{at}"} if e["type"] == "function_call" else e for at, e in enumerate(items)]
    message = Message(Role.ASSISTANT, response_items.blocks_of(items, "another"))
    for item in map(json.loads, response_items.conversation([message], OPTIONS)):
        assert item["type"] in ("message", "function_call")
        assert not any(name.startswith("new_") for name in item)


def test_a_call_that_a_hook_has_changed_says_what_it_says_now() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{ "a": 1 }', "id": "fc"}
    (call,) = response_items.blocks_of([item], "acme")
    assert isinstance(call, ToolCall)
    message = Message(Role.ASSISTANT, evolve(call, arguments={"a": 2}))
    (sent,) = response_items.conversation([message], OPTIONS)
    assert json.loads(sent) == {**item, "arguments": '{"a":2}'}


def test_ids_that_were_distinguished_are_the_ones_that_go_back() -> None:
    call = {"id": "same", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = chat_history.read_message({"role": "assistant", "content": None, "tool_calls": [call, call]}, "acme")
    (sent,) = chat_history.conversation([message], OPTIONS)
    assert [c["id"] for c in json.loads(sent)["tool_calls"]] == [c.id for c in message.tool_calls]


def test_reasoning_stays_where_it_is_not_wanted_back() -> None:
    silent = evolve(OPTIONS, reasoning=False)
    message = chat_history.read_message(
        {"role": "assistant", "content": "a", "reasoning": "b", "reasoning_details": [1]}, "acme"
    )
    assert message.reasoning == "b"
    assert json.loads(chat_history.conversation([message], silent)[0]) == {"role": "assistant", "content": "a"}
    thought = Message(Role.ASSISTANT, response_items.blocks_of([{"type": "reasoning", "summary": []}], "acme"))
    assert response_items.conversation([thought], silent) == []


def test_blocks_of_another_provider_are_left_out() -> None:
    foreign = Message(
        Role.ASSISTANT,
        (ThinkingBlock("hm", "sig"), RawBlock("other", {"type": "x"}), TextBlock("Hi.", extras={"c": 1})),
    )
    assert json.loads(chat_history.conversation([foreign], OPTIONS)[0]) == {"role": "assistant", "content": "Hi."}
    (item,) = response_items.conversation([foreign], OPTIONS)
    assert json.loads(item) == {"type": "message", "role": "assistant", "content": "Hi."}


def test_each_message_is_encoded_once() -> None:
    message = Message(Role.USER, "Hi.")
    first, second = (chat_history.conversation([message], OPTIONS)[0] for _ in range(2))
    assert first is second


def test_media_of_results_follow_all_results_of_a_turn() -> None:
    png = b"png"
    results = [
        Message(Role.TOOL, ToolResult("a", (TextBlock("see"), _image(png)), name="look")),
        Message(Role.TOOL, ToolResult("b", "plain")),
    ]
    sent = [json.loads(each) for each in chat_history.conversation([*results, Message(Role.USER, "So?")], OPTIONS)]
    assert [each["role"] for each in sent] == ["tool", "tool", "user", "user"]
    assert sent[2]["content"][1]["image_url"]["url"] == "data:image/png;base64,cG5n"
    (output, *_) = [json.loads(each) for each in response_items.conversation(results, OPTIONS)]
    shown = {"type": "input_image", "image_url": "data:image/png;base64,cG5n", "detail": "auto"}
    assert output["output"][1] == shown


def _image(data: bytes) -> Any:
    return MediaBlock("image", "image/png", data=data)


# -- whole and in pieces --------------------------------------------------------------------------


def test_usage_is_never_more_than_its_whole() -> None:
    usage = chat_completions.usage_of(
        {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 7},
            "cost": 0.5,
        }
    )
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens) == (10, 10, 7, 7)
    assert usage.cost == 0.5
    assert chat_completions.usage_of({"prompt_tokens": None, "completion_tokens": -1}).total_tokens == 0


def test_a_refusal_is_an_answer_that_was_filtered() -> None:
    said = {"role": "assistant", "content": None, "refusal": "I cannot."}
    response = chat_completions.response_of({"choices": [{"message": said, "finish_reason": "stop"}]}, OPTIONS)
    assert (response.message.text, response.stop_reason) == ("I cannot.", "refusal")
    item = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    response = responses.response_of({"status": "completed", "output": [item]}, OPTIONS)
    assert (response.message.text, response.stop_reason) == ("I cannot.", "refusal")
