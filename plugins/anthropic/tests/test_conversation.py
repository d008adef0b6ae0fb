"""A conversation as the Messages API wants it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import InputError
from locus.core.messages import MediaBlock, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus_plugin_anthropic.conversation import conversation
from locus_testkit.strategies import conversations

PNG = b"\x89PNG"


def _user(*blocks: Any) -> Message:
    return Message(Role.USER, blocks if len(blocks) != 1 else blocks[0])


def _call_turn(*ids: str, own: bool = True) -> Message:
    calls = tuple(ToolCall(each, "look", {"n": at}) for at, each in enumerate(ids))
    return Message(Role.ASSISTANT, calls, extras={"anthropic": {}} if own else {})


def _result(call_id: str, content: Any = "ok", *, is_error: bool = False) -> Message:
    return Message(Role.TOOL, ToolResult(call_id, content, is_error, "look"))


def _roles(*messages: Message) -> list[str]:
    return [turn["role"] for turn in conversation(messages).messages]


def _last(*messages: Message) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = conversation(messages).messages[-1]["content"]
    return content


def test_system_prompts_at_the_beginning_are_kept_apart() -> None:
    talk = conversation((Message(Role.SYSTEM, "Be brief."), Message(Role.SYSTEM, "Be kind."), _user("Hi.")))
    assert talk.system == [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    assert talk.messages == [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]


def test_system_prompt_in_the_middle_stays_where_it_is() -> None:
    assert _last(_user("Hi."), Message(Role.SYSTEM, "Be brief.")) == [
        {"type": "text", "text": "Hi."},
        {"type": "text", "text": "<system>\nBe brief.\n</system>"},
    ]


def test_same_prompt_may_be_at_the_beginning_and_in_the_middle() -> None:
    prompt = Message(Role.SYSTEM, "Be brief.")
    talk = conversation((prompt, _user("Hi."), prompt))
    assert talk.system == [{"type": "text", "text": "Be brief."}]
    assert talk.messages[0]["content"][1]["text"] == "<system>\nBe brief.\n</system>"


def test_all_results_of_a_turn_are_one_turn_of_the_user() -> None:
    messages = (_user("Hi."), _call_turn("a", "b"), _result("a"), _result("b", "no", is_error=True), _user("And?"))
    assert _roles(*messages) == ["user", "assistant", "user"]
    assert _last(*messages) == [
        {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
        {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_results_come_before_what_the_user_says_to_them() -> None:
    content = _last(_user("Hi."), _call_turn("a", "b"), _result("a"), _user("Hm."), _result("b"))
    assert [block["type"] for block in content] == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize("content", ["", " \n", ()], ids=["empty", "blank", "no blocks"])
def test_result_without_content_is_sent_without(content: Any) -> None:
    assert _last(_user("Hi."), _call_turn("a"), _result("a", content)) == [{"type": "tool_result", "tool_use_id": "a"}]


def test_error_without_words_gets_one() -> None:
    # The API refuses an error that has no content.
    assert _last(_user("Hi."), _call_turn("a"), _result("a", "", is_error=True)) == [
        {"type": "tool_result", "tool_use_id": "a", "content": "Error", "is_error": True}
    ]


def test_result_may_hold_pictures() -> None:
    picture = MediaBlock("image", "image/png", data=PNG)
    (block,) = _last(_user("Hi."), _call_turn("a"), _result("a", (TextBlock("seen"), TextBlock(""), picture)))
    assert block["content"] == [
        {"type": "text", "text": "seen"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
        },
    ]


def test_media_by_url_by_bytes_and_as_text() -> None:
    blocks = (
        MediaBlock("image", url="https://example.org/a.png"),
        MediaBlock("image", url="data:image/png;base64,aGk="),
        MediaBlock("document", "application/pdf", data=b"%PDF", name="a.pdf"),
        MediaBlock("document", url="https://example.org/a.pdf"),
        MediaBlock("document", "text/markdown", data="né".encode()),
    )
    assert _last(_user(*blocks)) == [
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "né"}},
    ]


def test_audio_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="transcript"):
        conversation((_user(MediaBlock("audio", "audio/wav", data=b"RIFF")),))


@pytest.mark.parametrize(("kind", "media_type"), [("image", "image/tiff"), ("document", "application/zip")])
def test_media_that_the_api_does_not_take_are_refused_in_words(kind: str, media_type: str) -> None:
    with pytest.raises(InputError, match=f"does not accept {kind} of type '{media_type}', only "):
        conversation((_user(MediaBlock(kind, media_type, data=b"x")),))


def test_picture_that_another_model_made_is_mentioned() -> None:
    made = Message(Role.ASSISTANT, (TextBlock("Here."), MediaBlock("image", "image/png", data=PNG)))
    assert _last(_user("Draw."), made)[1] == {"type": "text", "text": "[image: image/png]"}


def test_turn_of_another_provider_goes_without_its_signature() -> None:
    foreign = Message(
        Role.ASSISTANT,
        (
            ThinkingBlock("hm", "signed"),
            RawBlock("openai", {"type": "reasoning"}),
            TextBlock("Hello.", extras={"annotations": []}),
            ToolCall("a", "look", {}, extras={"index": 0}),
        ),
    )
    assert _last(_user("Hi."), foreign) == [
        {"type": "text", "text": "Hello."},
        {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    ]


def test_conversation_begins_with_the_user() -> None:
    assert _roles(Message(Role.ASSISTANT, "Hello."), _user("Hi.")) == ["user", "assistant", "user"]


def test_turns_that_hold_nothing_are_left_out() -> None:
    assert _roles(_user("Hi."), Message(Role.ASSISTANT, ""), _user("Still there?")) == ["user"]


def test_arguments_that_were_not_an_object_go_back_wrapped() -> None:
    call = Message(Role.ASSISTANT, ToolCall("a", "look", malformed='{"n": '), extras={"anthropic": {}})
    assert _last(_user("Hi."), call)[0]["input"] == {"INVALID_JSON": '{"n": '}


def test_ids_that_repeat_are_distinguished() -> None:
    messages = (
        *(_user("1"), _call_turn("call_0", "call_0"), _result("call_0", "x"), _result("call_0", "y")),
        *(_call_turn("call_0"), _result("call_0", "z")),
    )
    turns = conversation(messages).messages
    calls = [block["id"] for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    results = [
        (b["tool_use_id"], b["content"]) for turn in turns for b in turn["content"] if b["type"] == "tool_result"
    ]
    assert len(set(calls)) == 3
    assert results == list(zip(calls, ["x", "y", "z"], strict=True))


def test_result_belongs_to_the_call_before_it() -> None:
    # Given a call without a result, and one of the same id with one.
    turns = conversation(
        (_user("1"), _call_turn("call_0"), _user("2"), _call_turn("call_0"), _result("call_0"))
    ).messages
    assert turns[4]["content"][0]["tool_use_id"] == turns[3]["content"][0]["id"] != turns[1]["content"][0]["id"]


@pytest.mark.parametrize("odd", ["functions.look:0", "", "é", "a b"])
def test_ids_that_the_api_refuses_are_replaced(odd: str) -> None:
    turns = conversation((_user("1"), _call_turn(odd, own=False), _result(odd))).messages
    fixed = turns[1]["content"][0]["id"]
    assert fixed
    assert fixed.isascii()
    assert not set(fixed) & set(".: é")
    assert turns[2]["content"][0]["tool_use_id"] == fixed


@given(conversations(), st.integers(0, 20))
def test_longer_conversation_begins_as_the_shorter(messages: tuple[Message, ...], cut: int) -> None:
    try:
        whole = conversation(messages)
        # A request ends where it is the model's turn.
        ends = [at for at, message in enumerate(messages) if message.role is Role.ASSISTANT]
        part = conversation(messages[: ends[cut % len(ends)]] if ends else messages)
    except InputError:
        return  # media that the API does not take
    flat = [(turn["role"], block) for turn in whole.messages for block in turn["content"]]
    begun = [(turn["role"], block) for turn in part.messages for block in turn["content"]]
    assert flat[: len(begun)] == begun
    assert whole.system[: len(part.system)] == part.system


@given(conversations())
def test_every_conversation_has_the_form_that_the_api_wants(messages: tuple[Message, ...]) -> None:
    try:
        turns = conversation(messages).messages
    except InputError:
        return
    roles = [turn["role"] for turn in turns]
    assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
    ids = [block["id"] for turn in turns for block in turn["content"] if block.get("type") == "tool_use"]
    assert len(ids) == len(set(ids))
    assert all(turn["content"] for turn in turns)
    texts = [block["text"] for turn in turns for block in turn["content"] if block.get("type") == "text"]
    assert all(text.strip() for text in texts)
