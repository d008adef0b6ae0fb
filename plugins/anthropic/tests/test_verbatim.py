"""What the API sent is what it gets back, in one piece or streamed, before and after a journal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.codec import decode, encode
from locus.core.messages import Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models.protocol import Chunk
from locus_plugin_anthropic.conversation import conversation
from locus_plugin_anthropic.reply import check_message, response_of
from locus_plugin_anthropic.stream import Stream
from locus_wire import Event

from .kit import at_once, events_of, message_of

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_SAID = _TEXT.filter(str.strip)
_NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_ATOMS = st.none() | st.booleans() | _NUMBERS | _TEXT
_DATA = st.recursive(_ATOMS, lambda d: st.lists(d, max_size=2) | st.dictionaries(_TEXT, d, max_size=2), max_leaves=4)
_OBJECTS = st.dictionaries(_TEXT, _DATA, max_size=3)
#: Fields that nobody here has heard of.
_MORE = st.dictionaries(st.sampled_from(["caller", "toolset_name", "x_new", "é"]), _DATA, max_size=2)


def _block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.builds(lambda more, own: {**more, **own}, _MORE, known)


_CITED = st.none() | st.lists(
    st.fixed_dictionaries({"type": st.just("page_location"), "cited_text": _TEXT}), max_size=2
)
_BLOCKS = st.one_of(
    _block("text", text=_SAID),
    _block("text", text=_SAID, citations=_CITED),
    _block("thinking", thinking=_TEXT, signature=_TEXT),
    _block("thinking", thinking=_TEXT),
    _block("redacted_thinking", data=_TEXT),
    _block("tool_use", id=st.uuids().map(lambda u: f"toolu_{u.hex}"), name=_SAID, input=_OBJECTS),
    _block("server_tool_use", id=_SAID, name=_SAID, input=_OBJECTS),
    _block("web_search_tool_result", tool_use_id=_SAID, content=_DATA),
    _block("of_the_future", payload=_DATA),
    # Known by name, and not of the form that the name stands for.
    _block("text", text=st.none() | st.integers()),
    _block("thinking", thinking=st.none(), signature=st.integers()),
)
_CONTENT = st.lists(_BLOCKS, max_size=5)
_ASKED = Message(Role.USER, "Go on.")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _sent_back(message: Message) -> list[Any]:
    turns = conversation((_ASKED, message)).messages
    return [block for turn in turns[1:] for block in turn["content"]]


def _receive(content: list[dict[str, Any]]) -> Message:
    return response_of(check_message(message_of(*content)), {}, Usage(), name="m").message


@given(_CONTENT)
def test_every_block_goes_back_as_it_came(content: list[dict[str, Any]]) -> None:
    assert _canonical(_sent_back(_receive(content))) == _canonical(content)


@given(_CONTENT)
def test_every_block_goes_back_as_it_came_out_of_a_journal(content: list[dict[str, Any]]) -> None:
    stored = json.loads(json.dumps(encode(_receive(content))))
    assert _canonical(_sent_back(decode(stored, Message))) == _canonical(content)


@given(_CONTENT, st.integers(1, 9))
def test_stream_tells_the_same_as_one_piece(content: list[dict[str, Any]], size: int) -> None:
    whole = message_of(*content)
    stream, chunks = _stream(whole, size)
    # Then the message, apart from the order of its fields, is the one that came whole.
    assert _canonical(stream.message) == _canonical(whole)
    assert stream.raw == {}
    assert _join(chunks, "text") == "".join(b["text"] for b in content if _holds(b, "text"))
    assert _join(chunks, "reasoning") == "".join(b["thinking"] for b in content if _holds(b, "thinking"))


def _holds(block: dict[str, Any], key: str) -> bool:
    return bool(block["type"] == key and isinstance(block[key], str))


def _join(chunks: list[Chunk], kind: str) -> str:
    return "".join(chunk.text for chunk in chunks if chunk.kind == kind)


def _stream(whole: dict[str, Any], size: int) -> tuple[Stream, list[Chunk]]:
    chunks: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        chunks.append(chunk)

    stream = Stream(listen)
    ended = [at_once(stream.take(Event(json.dumps(event), event["type"]))) for event in events_of(whole, size)]
    assert ended == [False] * (len(ended) - 1) + [True]
    return stream, chunks


def test_blocks_of_the_kernel_are_what_they_look_like() -> None:
    message = _receive(
        [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "Look:", "citations": [{"cited_text": "x"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": [1]}, "caller": {"type": "direct"}},
        ]
    )
    assert message.content == (
        ThinkingBlock("hm", "sig"),
        RawBlock("anthropic", {"type": "redacted_thinking", "data": "opaque"}),
        TextBlock("Look:", extras={"citations": [{"cited_text": "x"}]}),
        ToolCall("toolu_1", "look", {"at": [1]}, extras={"caller": {"type": "direct"}}),
    )
    assert message.extras["anthropic"]["id"] == "msg_01"


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_blank_text_is_never_sent(text: str) -> None:
    message = _receive([{"type": "text", "text": text}, {"type": "text", "text": "x"}])
    assert _sent_back(message) == [{"type": "text", "text": "x"}]
    assert conversation(
        (Message(Role.SYSTEM, text), Message(Role.USER, (TextBlock(text), TextBlock("y"))))
    ).messages == [{"role": "user", "content": [{"type": "text", "text": "y"}]}]


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    call = {"type": "tool_use", "id": "t", "name": "n", "input": {"\ud83d": "\ud83d"}}
    message = _receive([{"type": "text", "text": "a\ud83d"}, call])
    assert message.text == "a\ufffd"
    assert dict(message.tool_calls[0].arguments) == {"\ufffd": "\ufffd"}
