"""The check of conversations takes every valid one, and says what is wrong with each of the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve

from locus.core.messages import Block, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus_testkit import HistoryInvalid, assert_valid_history, assert_valid_request, history_problems

SYSTEM = Message(Role.SYSTEM, "Be brief.")
ASKED = Message(Role.USER, "Add.")
THOUGHT = ThinkingBlock("hm", "signed")
ONE, TWO = ToolCall("1", "add", {"a": 1}), ToolCall("2", "look")
TURN = Message(Role.ASSISTANT, (THOUGHT, TextBlock("so"), ONE, TWO, RawBlock("p", {"x": 1})))
DONE = Message(Role.ASSISTANT, "done")


def result(call: ToolCall) -> Message:
    return Message(Role.TOOL, ToolResult(call.id, "ok", name=call.name))


FIRST, SECOND = result(ONE), result(TWO)
TALK = (SYSTEM, ASKED, TURN, FIRST, SECOND, DONE, ASKED, TURN, FIRST, SECOND)


def test_a_valid_conversation_passes_whole_and_in_part() -> None:
    assert history_problems(TALK, TALK) == ()
    assert_valid_request(TALK, TALK)
    assert_valid_request((SYSTEM, ASKED, TURN, FIRST, SECOND), TALK)
    assert_valid_request((SYSTEM, ASKED), TALK)
    assert_valid_history(TALK[:6])
    assert_valid_history(())


def test_results_may_come_in_one_message() -> None:
    both = Message(Role.TOOL, (*FIRST.content, *SECOND.content))
    assert_valid_request((ASKED, TURN, both))


INVALID: dict[str, tuple[Sequence[Message], str]] = {
    "cut before the results": ((ASKED, TURN), r"at the end '1' \(add\) and '2' \(look\) has no result"),
    "cut between the results": ((ASKED, TURN, FIRST, DONE), r"message 3 \(assistant\) is where results belong"),
    "cut behind the call": (
        (ASKED, FIRST, SECOND),
        r"message 1 \(tool\) holds the result of '1' \(add\), never called",
    ),
    "twice": ((ASKED, TURN, FIRST, FIRST, SECOND), r"holds the result of '1' \(add\) where that of '2' \(look\)"),
    "in another order": ((ASKED, TURN, SECOND, FIRST), "where that of '1'"),
    "one too many": ((ASKED, TURN, FIRST, SECOND, SECOND), r"message 4 \(tool\) holds the result of '2'"),
    "something between": ((ASKED, TURN, ASKED, FIRST, SECOND), r"message 2 \(user\) is where results belong"),
    "no user": ((SYSTEM, DONE, ASKED), r"message 1 \(assistant\) begins the conversation"),
    "a late system message": ((ASKED, SYSTEM, DONE), r"message 1 \(system\) comes after other messages"),
    "a user who thinks": ((Message(Role.USER, (THOUGHT,)),), "a ThinkingBlock, which only the model makes"),
    "a user with results": ((ASKED, Message(Role.USER, FIRST.content)), "holds a ToolResult"),
    "a tool that talks": ((ASKED, TURN, Message(Role.TOOL, "ok"), FIRST, SECOND), "holds a TextBlock"),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_is_wrong_is_said_with_its_place(name: str) -> None:
    messages, said = INVALID[name]
    with pytest.raises(HistoryInvalid, match=said) as caught:
        assert_valid_history(messages)
    assert caught.value.problems == history_problems(messages)


def change(*blocks: Block) -> Message:
    return evolve(TURN, content=blocks)


CHANGED = {
    "thinking dropped": (change(*TURN.content[1:]), "its thinking is"),
    "signature dropped": (change(ThinkingBlock("hm"), *TURN.content[1:]), "its thinking is"),
    "thinking moved": (change(*TURN.content[1:], THOUGHT), "its blocks are others"),
    "unknown block dropped": (change(*TURN.content[:-1]), "its blocks are others"),
    "text changed": (change(THOUGHT, TextBlock("no"), *TURN.content[2:]), "no turn has its text"),
    "extras dropped": (evolve(TURN, extras={"id": "m1"}), "its blocks are others"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_turn_that_is_not_whole_is_found(name: str) -> None:
    turn, said = CHANGED[name]
    assert_valid_request((ASKED, turn, FIRST, SECOND))
    with pytest.raises(HistoryInvalid, match=rf"message 1 \(assistant\) is not as the model said it: {said}"):
        assert_valid_request((ASKED, turn, FIRST, SECOND), TALK)


def test_turns_in_another_order_or_twice_are_found() -> None:
    talk = (ASKED, DONE, ASKED, TURN, FIRST, SECOND)
    assert_valid_history(talk, talk)
    for view in ((ASKED, TURN, FIRST, SECOND, ASKED, DONE), (*talk, ASKED, DONE)):
        with pytest.raises(HistoryInvalid, match="after a turn that was said later, or appears twice"):
            assert_valid_history(view, talk)


@pytest.mark.parametrize("messages", [(), (SYSTEM,), (ASKED, DONE)])
def test_a_request_asks_for_an_answer(messages: Sequence[Message]) -> None:
    assert_valid_history(messages)
    with pytest.raises(HistoryInvalid, match="there is nothing for the model to answer"):
        assert_valid_request(messages)


def test_a_note_of_the_system_stays_where_it_was_said() -> None:
    talk = (SYSTEM, ASKED, TURN, FIRST, SECOND, Message(Role.SYSTEM, "You have seen this."))
    assert_valid_request(talk, talk)
    assert_valid_request((SYSTEM, ASKED, talk[-1]), talk)
    with pytest.raises(HistoryInvalid, match=r"message 1 .system. comes after other messages"):
        assert_valid_request((ASKED, SYSTEM), talk)
