"""The turn protocol: what the model is shown, what its text means, and when a call is not accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.messages import MediaBlock, Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models.protocol import ModelRequest, ModelSettings, OutputSpec
from locus.tools.definition import ToolExample, ToolSpec
from locus_plugin_llamacpp.errors import BadRequest
from locus_plugin_llamacpp.examples import GENERIC, examples_for
from locus_plugin_llamacpp.history import EXTRAS
from locus_plugin_llamacpp.turns import Turn, is_repeat, plan, read, without

LOOK = ToolSpec(
    name="look",
    description="Look\n   at a place.",
    parameters={
        "type": "object",
        "properties": {"at": {"type": "string", "description": "the place"}, "zoom": {"type": "integer"}},
        "required": ["at"],
    },
)
GO = ToolSpec(
    name="go", description="Go there.", parameters={"type": "object", "properties": {"to": {"enum": ["x", "y"]}}}
)
HELLO = Message(Role.USER, "Hello")


def request(*messages: Message, tools: tuple[ToolSpec, ...] = (LOOK, GO), **settings: Any) -> ModelRequest:
    return ModelRequest(messages=messages or (HELLO,), tools=tools, settings=ModelSettings(**settings))


def call_turn(name: str, call_id: str = "call_1", **arguments: Any) -> Message:
    return Message(Role.ASSISTANT, (ToolCall(call_id, name, arguments),))


def result(text: str, call_id: str = "call_1") -> Message:
    return Message(Role.TOOL, (ToolResult(call_id, text),))


def tail(turn: Turn, count: int) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in turn.messages[-count:]]


# ----------------------------------------------------------------- what is shown


def test_the_system_prompt_holds_the_own_one_and_a_line_a_tool() -> None:
    system = plan(request(Message(Role.SYSTEM, "Be kind."), HELLO)).messages[0]

    assert system["role"] == "system"
    assert system["content"].startswith("Be kind.\n")
    assert "- look(at: the place, zoom?: integer): Look at a place.\n" in system["content"]
    assert "- go(to?: one of x|y): Go there.\n" in system["content"]
    assert "- submit_answer(" in system["content"]


def test_the_answer_has_a_name_that_no_tool_has() -> None:
    mine = ToolSpec(name="submit_answer", description="Mine.", parameters={"type": "object"})

    turn = plan(request(tools=(mine,)))

    assert turn.final not in (None, "submit_answer")
    assert f"call {turn.final}" in turn.messages[0]["content"]


def test_generic_examples_come_between_the_rules_and_the_conversation() -> None:
    turn = plan(request())

    first = GENERIC[0]
    assert turn.messages[1] == {"role": "user", "content": first.user}
    assert json.loads(turn.messages[2]["content"]) == {"tool": first.steps[0].tool, "args": first.steps[0].arguments}
    assert turn.messages[3]["content"] == f"Result: {first.steps[0].result}"
    assert turn.messages[-1] == {"role": "user", "content": "Hello"}


def test_examples_of_the_tools_take_the_place_of_the_generic_ones() -> None:
    example = ToolExample(user="See the sea", arguments={"at": "sea"}, result="blue", answer="It is blue.")
    turn = plan(request(tools=(ToolSpec(name="look", description="", parameters={}, examples=(example,)), GO)))

    contents = [message["content"] for message in turn.messages]
    assert GENERIC[0].user not in contents
    assert contents[1:5] == [
        "See the sea",
        '{"tool": "look", "args": {"at": "sea"}}',
        "Result: blue",
        '{"tool": "submit_answer", "args": {"answer": "It is blue."}}',
    ]


def test_examples_of_two_tools_for_one_request_are_one_conversation() -> None:
    def spec(name: str, *examples: ToolExample) -> ToolSpec:
        return ToolSpec(name=name, description="", parameters={}, examples=examples)

    last = ToolExample(user="Go where it is warm", arguments={"to": "y"}, result="there", answer="I am in y.")
    first = ToolExample(user="Go where it is warm", arguments={"at": "all"}, result="y is warm")
    single = ToolExample(user="Go to x", arguments={"to": "x"}, result="in x")

    flow, alone, greeting = examples_for((spec("go", single, last), spec("look", first)))

    assert [step.tool for step in flow.steps] == ["look", "go"]
    assert flow.answer == "I am in y."
    assert (alone.steps[0].result, alone.answer) == ("in x", "in x")
    assert greeting.steps == ()


def test_each_turn_of_the_model_is_one_object_and_each_result_a_user_turn() -> None:
    turn = plan(
        request(HELLO, call_turn("look", at="sea"), result("blue"), Message(Role.ASSISTANT, "It is blue."), HELLO)
    )

    assert tail(turn, 5) == [
        ("user", "Hello"),
        ("assistant", '{"tool": "look", "args": {"at": "sea"}}'),
        ("user", "Result: blue"),
        ("assistant", '{"tool": "submit_answer", "args": {"answer": "It is blue."}}'),
        ("user", "Hello"),
    ]


def test_calls_made_at_once_are_shown_one_after_the_other() -> None:
    both = Message(Role.ASSISTANT, (ToolCall("a", "look", {"at": "sea"}), ToolCall("b", "go", {"to": "x"})))
    turn = plan(request(HELLO, both, result("there", "b"), result("blue", "a")))

    assert tail(turn, 4) == [
        ("assistant", '{"tool": "go", "args": {"to": "x"}}'),
        ("user", "Result: there"),
        ("assistant", '{"tool": "look", "args": {"at": "sea"}}'),
        ("user", "Result: blue"),
    ]


def test_text_beside_calls_of_another_model_is_kept() -> None:
    one = Message(Role.ASSISTANT, (TextBlock("First"), ToolCall("a", "look", {"at": "sea"})))
    two = Message(Role.ASSISTANT, (TextBlock("Then"), ToolCall("a", "look", {}), ToolCall("b", "go", {})))
    turn = plan(request(HELLO, one, result("blue", "a"), two, result("1", "a"), result("2", "b")))

    assert [content for _, content in tail(turn, 7)] == [
        'First\n{"tool": "look", "args": {"at": "sea"}}',
        "Result: blue",
        "Then",
        '{"tool": "look", "args": {}}',
        "Result: 1",
        '{"tool": "go", "args": {}}',
        "Result: 2",
    ]


def test_what_the_model_wrote_goes_back_letter_for_letter() -> None:
    written = '{"tool": "look", "args": {"at": "caf\\u00e9",  "zoom": 1}}'
    kept = Message(Role.ASSISTANT, (ToolCall("call_1", "look", {"at": "café", "zoom": 1}),), extras={EXTRAS: written})

    assert tail(plan(request(HELLO, kept, result("small"))), 2)[0] == ("assistant", written)


def test_a_turn_that_was_changed_since_goes_back_as_it_is_now() -> None:
    written = '{"tool": "submit_answer", "args": {"answer": "Call 555-0199"}}'
    changed = Message(Role.ASSISTANT, "Call [phone]", extras={EXTRAS: written})

    assert "555" not in tail(plan(request(HELLO, changed, HELLO)), 2)[0][1]


def test_other_blocks_are_left_out_and_media_refused() -> None:
    thought = Message(Role.ASSISTANT, (ThinkingBlock("hm", "sig"), TextBlock("Yes.")))
    assert tail(plan(request(HELLO, thought, HELLO)), 2)[0] == (
        "assistant",
        '{"tool": "submit_answer", "args": {"answer": "Yes."}}',
    )

    with pytest.raises(BadRequest, match="image"):
        plan(request(Message(Role.USER, MediaBlock("image", url="https://x.org/a.png"))))


def test_without_tools_the_conversation_is_plain() -> None:
    turn = plan(request(Message(Role.SYSTEM, "Be kind."), HELLO, Message(Role.ASSISTANT, "Hi."), HELLO, tools=()))

    assert turn.schema is None
    assert [(m["role"], m["content"]) for m in turn.messages] == [
        ("system", "Be kind."),
        ("user", "Hello"),
        ("assistant", "Hi."),
        ("user", "Hello"),
    ]


MESSAGES = st.lists(
    st.one_of(
        st.just([HELLO]),
        st.text(max_size=5).map(lambda text: [Message(Role.ASSISTANT, text)]),
        st.lists(st.sampled_from(["look", "go", "gone"]), min_size=1, max_size=3).map(
            lambda names: [
                Message(Role.ASSISTANT, tuple(ToolCall("same", name, {"at": i}) for i, name in enumerate(names))),
                *[result(f"{i}", "same") for i in range(len(names))],
            ]
        ),
    ),
    max_size=8,
)


@given(MESSAGES, st.integers(min_value=0, max_value=8))
def test_the_prompt_of_a_later_turn_extends_that_of_an_earlier_one(groups: list[list[Message]], cut: int) -> None:
    system = Message(Role.SYSTEM, "Be kind.")
    early = [message for group in groups[:cut] for message in group]
    late = [message for group in groups for message in group]

    first, second = plan(request(system, HELLO, *early)), plan(request(system, HELLO, *late))

    assert second.messages[: len(first.messages)] == first.messages


@pytest.mark.parametrize("choice", [None, "none", "required", "look"])
def test_the_tool_choice_changes_the_grammar_and_not_the_prompt(choice: str | None) -> None:
    assert plan(request(tool_choice=choice)).messages == plan(request()).messages


# ----------------------------------------------------------------- what may be said


def tools_in(turn: Turn) -> list[str]:
    assert turn.schema is not None
    return [each["properties"]["tool"]["const"] for each in turn.schema["anyOf"]]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["look", "go", "submit_answer"]),
        ("auto", ["look", "go", "submit_answer"]),
        ("none", ["submit_answer"]),
        ("required", ["look", "go"]),
        ("go", ["go"]),
    ],
)
def test_the_tool_choice_decides_what_is_on_offer(choice: str | None, names: list[str]) -> None:
    assert tools_in(plan(request(tool_choice=choice))) == names


def test_a_tool_choice_that_names_no_tool_is_refused() -> None:
    with pytest.raises(BadRequest, match="look, go, got 'fly'"):
        plan(request(tool_choice="fly"))


def test_an_output_schema_constrains_the_answer_with_and_without_tools() -> None:
    output = OutputSpec(name="P", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    with_tools = plan(ModelRequest(messages=(HELLO,), tools=(LOOK,), output=output))
    alone = plan(ModelRequest(messages=(HELLO,), output=output))

    assert with_tools.schema is not None
    answer = with_tools.schema["anyOf"][-1]["properties"]["args"]["properties"]["answer"]
    assert answer["properties"] == {"n": {"type": "integer"}}
    assert alone.schema == {"type": "object", "properties": {"n": {"type": "integer"}}}


# ----------------------------------------------------------------- what was said


def test_a_call_and_an_answer_are_distinguished() -> None:
    turn = plan(request())

    call = read(turn, '{"tool": "look", "args": {"at": "sea"}}').call
    assert call == ToolCall("call_1", "look", {"at": "sea"})
    reply = read(turn, '{"tool": "submit_answer", "args": {"answer": "Tea \\ud83c\\udf75"}}')
    assert (reply.call, reply.answer, reply.complete) == (None, "Tea 🍵", True)


def test_ids_count_the_calls_of_the_conversation() -> None:
    turn = plan(request(HELLO, call_turn("look", at="sea"), result("blue"), HELLO))

    call = read(turn, '{"tool": "go", "args": {}}').call
    assert call is not None
    assert call.id == "call_2"


def test_an_answer_that_was_cut_is_what_there_is_of_it() -> None:
    reply = read(plan(request()), '{"tool": "submit_answer", "args": {"answer": "It was a')

    assert (reply.answer, reply.complete) == ("It was a", False)


def test_a_call_that_was_cut_is_reported_and_not_guessed() -> None:
    text = '{"tool": "look", "args": {"at": "the se'
    reply = read(plan(request()), text)

    assert reply.call == ToolCall("call_1", "look", malformed=text)
    assert not reply.complete


def test_a_turn_that_was_cut_before_its_name_says_nothing() -> None:
    reply = read(plan(request()), '{"tool": "lo')

    assert (reply.call, reply.answer, reply.complete) == (None, "", False)


def test_half_surrogate_pairs_are_replaced_everywhere() -> None:
    call = read(plan(request()), '{"tool": "look", "args": {"at": ["\\ud800x"]}}').call

    assert call is not None
    assert call.arguments == {"at": ("\ufffdx",)}
    assert read(plan(request(tools=())), "a\ud800").answer == "a\ufffd"


def test_a_structured_answer_is_the_json_as_it_was_written() -> None:
    output = OutputSpec(name="P", schema={"type": "object"})
    turn = plan(ModelRequest(messages=(HELLO,), tools=(LOOK,), output=output))

    assert read(turn, '{"tool": "submit_answer", "args": {"answer": {"n":  1}}}').answer == '{"n":  1}'


# ----------------------------------------------------------------- the repeat guard


AGAIN = '{"tool": "look", "args": {"zoom": 2, "at": "sea"}}'


def after_looking(**settings: Any) -> Turn:
    return plan(request(HELLO, call_turn("look", at="sea", zoom=2), result("blue"), **settings))


def test_the_same_call_in_the_same_user_turn_is_a_repeat_whatever_the_order_of_its_arguments() -> None:
    turn = after_looking()

    assert is_repeat(turn, read(turn, AGAIN))
    assert not is_repeat(turn, read(turn, '{"tool": "look", "args": {"at": "sea", "zoom": 3}}'))
    assert not is_repeat(turn, read(turn, '{"tool": "submit_answer", "args": {"answer": "blue"}}'))
    assert not is_repeat(turn, read(turn, AGAIN[:-1])), "a call that was cut is not known to be the same"


def test_a_new_user_turn_may_make_the_call_again() -> None:
    turn = plan(request(HELLO, call_turn("look", at="sea", zoom=2), result("blue"), HELLO))

    assert not is_repeat(turn, read(turn, AGAIN))


def test_after_a_repeat_that_tool_is_not_on_offer_and_the_prompt_is_the_same() -> None:
    turn = after_looking()
    next_turn = without(turn, ToolCall("x", "look", {"at": "x"}))

    assert tools_in(next_turn) == ["go", "submit_answer"]
    assert next_turn.messages == turn.messages
    assert tools_in(without(next_turn, ToolCall("x", "go", {"to": "x"}))) == ["submit_answer"]


def test_a_call_that_was_asked_for_by_name_may_repeat() -> None:
    turn = after_looking(tool_choice="look")

    assert not is_repeat(turn, read(turn, AGAIN))
