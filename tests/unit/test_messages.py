"""Messages and their blocks: what they take, what they refuse, and that they stay what they are."""

from __future__ import annotations

import pickle
from copy import copy
from typing import Any

import pytest

from locus.core import codec
from locus.core.frozen import FrozenDict, freeze
from locus.core.messages import (
    MediaBlock,
    Message,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    Usage,
    plugin_message,
    text_of,
)

TURN = Message(
    Role.ASSISTANT,
    [
        ThinkingBlock("hm, ", "signed"),
        TextBlock("one "),
        ToolCall("1", "search", {"q": ["a", {"deep": [1]}]}),
        RawBlock("acme", {"kind": "citation", "spans": [[1, 2]]}),
        ThinkingBlock("well"),
        TextBlock("two"),
        ToolCall("1", "book", malformed="{oops"),
    ],
)


def test_a_message_is_made_of_text_of_a_block_or_of_blocks() -> None:
    block = TextBlock("hi")
    assert Message(Role.USER, "hi") == Message("user", block) == Message(Role.USER, [block])
    assert Message(Role.USER, iter([block])).content == (block,)
    assert Message(Role.USER).content == Message(Role.USER, "").content == ()
    assert Message(Role.USER, "hi").role is Role.USER


def test_text_reasoning_calls_and_results_are_read_in_order() -> None:
    assert TURN.text == "one two"
    assert TURN.reasoning == "hm, well"
    assert [c.name for c in TURN.tool_calls] == ["search", "book"]
    assert TURN.tool_results == ()
    results = Message(Role.TOOL, [ToolResult("1", "a"), ToolResult("2", "b", is_error=True)])
    assert [r.content for r in results.tool_results] == ["a", "b"]
    assert (Message(Role.USER).text, Message(Role.USER).reasoning) == ("", "")


def test_the_text_of_a_result_leaves_out_what_is_not_text() -> None:
    assert text_of("plain") == "plain"
    assert text_of((TextBlock("a"), MediaBlock("image", url="u://i"), TextBlock("b"))) == "ab"


@pytest.mark.parametrize("content", [("hi",), ["hi"], [None], {"type": "text"}, [Role.USER]], ids=str)
def test_content_that_is_not_a_block_is_refused(content: Any) -> None:
    with pytest.raises(TypeError, match="use str or blocks"):
        Message(Role.USER, content)


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="robot"):
        Message("robot", "hi")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "video", "url": "u://v"}, "video"),
        ({"kind": "image"}, "either url or data"),
        ({"kind": "image", "url": "u://i", "data": b"x"}, "either url or data"),
        ({"kind": "image", "data": b"x"}, "media_type"),
    ],
    ids=str,
)
def test_a_medium_is_a_url_or_typed_bytes(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MediaBlock(**options)


def test_what_a_block_holds_is_frozen_all_the_way_down() -> None:
    given = {"list": [1, {"set": {2}}]}
    holders = [
        ToolCall("1", "t", given).arguments,
        ToolCall("1", "t", extras=given).extras,
        TextBlock("x", extras=given).extras,
        ThinkingBlock("x", extras=given).extras,
        RawBlock("p", given).data,
        Message(Role.USER, "x", extras=given).extras,
    ]
    given["list"].append("later")
    for held in holders:
        assert held == {"list": (1, {"set": {2}})}
        assert type(held) is type(held["list"][1]) is FrozenDict
        assert type(held["list"][1]["set"]) is frozenset


def test_what_was_frozen_is_not_looked_through_again() -> None:
    by_hand: FrozenDict[str, Any] = FrozenDict(list=[1])
    frozen = freeze(by_hand)
    assert frozen == {"list": (1,)}
    assert freeze(frozen) is frozen
    assert freeze({"in": frozen})["in"] is frozen
    assert freeze(FrozenDict({**frozen, "more": [2]})) == {"list": (1,), "more": (2,)}
    assert pickle.loads(pickle.dumps(frozen)) == copy(frozen) == frozen


def test_a_result_given_as_a_list_of_blocks_is_frozen_too() -> None:
    blocks = [TextBlock("a")]
    result = ToolResult("1", blocks)
    blocks.append(TextBlock("b"))
    assert result.content == (TextBlock("a"),)
    hash(Message(Role.TOOL, result))


@pytest.mark.parametrize(
    "value", [TURN, *TURN.content[:4], ToolResult("1", "x"), Usage()], ids=lambda v: type(v).__name__
)
def test_a_value_cannot_be_changed(value: Any) -> None:
    for name in [*type(value).__slots__, "something_new"]:
        if name != "__weakref__":
            with pytest.raises(AttributeError):
                setattr(value, name, None)


def test_an_encoding_is_computed_once_and_is_not_part_of_the_value() -> None:
    calls = []

    def encode(message: Message) -> dict[str, str]:
        calls.append(message)
        return {"text": message.text}

    message, same = Message(Role.USER, "hi"), Message(Role.USER, "hi")
    assert message.wire("acme", encode) is message.wire("acme", encode)
    assert message.wire("other", len_of_text) == 2
    assert len(calls) == 1
    assert message == same
    assert hash(message) == hash(same)
    assert repr(message) == repr(same)


def len_of_text(message: Message) -> int:
    return len(message.text)


def test_usage_adds_up_and_an_unknown_price_stays_unknown() -> None:
    one = Usage(prompt_tokens=3, completion_tokens=2, cached_tokens=1, cache_write_tokens=1, reasoning_tokens=1)
    priced = Usage(prompt_tokens=1, cost=0.5)
    assert (one + one).cost is None
    assert one + priced == Usage(
        prompt_tokens=4, completion_tokens=2, cached_tokens=1, cache_write_tokens=1, reasoning_tokens=1, cost=0.5
    )
    assert one.total_tokens == 5
    assert (one + priced) - one == priced
    assert one - (one + priced) == Usage()


def test_what_a_plugin_says_has_the_users_role_and_is_distinguished_from_the_users_words() -> None:
    said = plugin_message("judge", "Go on.")
    assert (said.role, said.text, said.plugin) == (Role.USER, "Go on.", "judge")
    assert codec.decode(codec.encode(said), Message) == said
    assert Message(Role.USER, "Go on.").plugin is None
    assert Message(Role.USER, "Go on.", extras={"locus.plugin": {"not": "a name"}}).plugin is None
