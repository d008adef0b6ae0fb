"""What judges are shown and what is made of their answers: laws over any text that a tool or a model may write."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import LocusError
from locus.core.executions import ToolExecution
from locus.core.messages import Message, Role, plugin_message
from locus.core.state import AgentState, ReasoningStep
from locus_plugin_reflexion.findings import found_nothing
from locus_plugin_reflexion.record import record, request_of
from locus_plugin_reflexion.reflection import Reflection, StepVerdict, parse_reflection, reply_schema
from locus_plugin_reflexion.reflector import describe_reflection
from locus_plugin_reflexion.rules import judge_by_rules

TEXTS = st.text(max_size=300) | st.sampled_from(['"}', "\n```\n", "</record>", '", "confidence": 1.0, "', "\u2028\r\n"])

EXECUTIONS = st.lists(
    st.builds(
        lambda name, arguments, result, failed, iteration: ToolExecution(
            tool_name=name,
            arguments=arguments,
            result=None if failed else result,
            error=f"ValueError: {result}" if failed else None,
            iteration=iteration,
        ),
        st.sampled_from("ab"),
        st.dictionaries(st.sampled_from("xy"), TEXTS | st.integers() | st.lists(TEXTS, max_size=2), max_size=2),
        TEXTS,
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=12,
).map(lambda executions: sorted(executions, key=lambda e: e.iteration))


def after(executions: list[ToolExecution], **changes: Any) -> AgentState:
    state = AgentState(**{"iteration": executions[-1].iteration if executions else 0, **changes})
    for execution in executions:
        state = state.with_tool_execution(execution)
    return state


# -- the record -----------------------------------------------------------------------------------


@given(EXECUTIONS, TEXTS)
def test_no_text_can_leave_its_place_in_the_record(executions: list[ToolExecution], request: str) -> None:
    state = after(executions)
    text = record(state, request=Message(Role.USER, request), why="?", window=3, max_chars=1000)
    shown = json.loads(text)
    assert shown["request"] == request
    step = [e for e in executions if e.iteration == state.iteration]
    assert [each["tool"] for each in shown["step"]["calls"]] == [e.tool_name for e in step]
    for each, execution in zip(shown["step"]["calls"], step, strict=True):
        assert each.get("result") == execution.result
        assert each.get("error") == execution.error
        assert each["arguments"] == json.loads(json.dumps(execution.arguments))
    assert len(shown["earlier_calls"]) == min(3, len(executions) - len(step))
    assert text == record(state, request=Message(Role.USER, request), why="?", window=3, max_chars=1000)


def test_the_record_has_a_size_however_long_the_run_and_its_texts_are() -> None:
    def size(calls: int, length: int) -> int:
        executions = [
            ToolExecution(
                tool_name="read", arguments={"q": "y" * length, "n": n}, result="x" * length, iteration=n // 50
            )
            for n in range(calls)
        ]
        request = Message(Role.USER, "z" * length)
        state = AgentState(tool_executions=executions, iteration=executions[-1].iteration)
        return len(record(state, request=request, why="?", window=6, max_chars=500))

    assert size(100, 100_000) < 25_000
    assert abs(size(100, 10_000) - size(1000, 10_000)) < 10


def test_a_long_text_is_shown_with_its_beginning_and_its_end() -> None:
    state = after([ToolExecution(tool_name="read", result="begin" + "x" * 5000 + "end")])
    (shown,) = json.loads(record(state, request=None, why="?", window=3, max_chars=100))["step"]["calls"]
    assert shown["result"].startswith("begin")
    assert shown["result"].endswith("end")
    assert "4,908 characters left out" in shown["result"]


def test_a_refused_call_and_one_from_the_cache_are_shown_as_what_they_are() -> None:
    refused = ToolExecution(tool_name="a", error="ToolError: no such tool", started=False)
    cached = ToolExecution(tool_name="b", result="1", cache_hit=True)
    first, second = json.loads(record(after([refused, cached]), request=None, why="?", window=3, max_chars=100))[
        "step"
    ]["calls"]
    assert (first["refused"], "error" in first) == ("ToolError: no such tool", False)
    assert second["answered_from_an_earlier_call"] is True


def make_message(role: Role, text: str = "x") -> Message:
    return Message(role, text)


USER, ANSWER, RESULT = make_message(Role.USER), make_message(Role.ASSISTANT), make_message(Role.TOOL)


@pytest.mark.parametrize(
    ("messages", "iteration", "at"),
    [
        ([USER, ANSWER, RESULT], 0, 0),
        ([USER, ANSWER, USER, ANSWER, RESULT], 0, 2),
        ([USER, ANSWER, USER, ANSWER, RESULT], 1, 0),
        ([USER, ANSWER, RESULT, plugin_message("p", "x"), ANSWER, RESULT], 1, 0),
        ([USER, USER, ANSWER, RESULT], 0, 1),
        ([USER, plugin_message("p", "x"), ANSWER, RESULT], 0, 0),
        ([ANSWER, RESULT], 0, None),
    ],
)
def test_the_request_is_the_users_turn_and_no_feedback_on_an_answer(
    messages: list[Message], iteration: int, at: int | None
) -> None:
    steps = [ReasoningStep(iteration=n) for n in range(iteration + 1)]
    found = request_of(AgentState(messages=messages, reasoning_steps=steps))
    assert found is (None if at is None else messages[at])


# -- the answer -----------------------------------------------------------------------------------


@given(
    TEXTS
    | st.recursive(
        st.none() | st.booleans() | st.floats() | TEXTS,
        lambda v: st.dictionaries(st.sampled_from(["verdict", "judgment", "confidence", "guidance"]), v),
    ).map(json.dumps)
)
def test_an_answer_is_a_reflection_or_a_refusal(answer: str) -> None:
    try:
        reflection = parse_reflection(reply_schema(), answer)
    except LocusError:
        return
    assert 0.0 <= reflection.confidence <= 1.0


@given(st.floats(allow_nan=False) | st.integers())
def test_a_confidence_is_clamped(confidence: float) -> None:
    reflection = Reflection(verdict=StepVerdict.STUCK, judgment="", confidence=confidence)
    assert reflection.confidence == min(1.0, max(0.0, confidence))


@pytest.mark.parametrize("confidence", [math.nan, True, "0.5", None])
def test_a_confidence_that_is_not_a_number_is_refused(confidence: Any) -> None:
    with pytest.raises(ValueError, match=r"^confidence must be a number from 0.0 to 1.0, got"):
        Reflection(verdict=StepVerdict.STUCK, judgment="", confidence=confidence)


@given(TEXTS, TEXTS)
def test_a_judge_cannot_write_lines_of_its_own_into_the_conversation(judgment: str, guidance: str) -> None:
    reflection = Reflection(verdict=StepVerdict.LOOP, judgment=judgment, confidence=0.5, guidance=guidance)
    lines = describe_reflection(reflection).split("\n")
    assert len(lines) == (4 if " ".join(guidance.split()) else 3)
    assert lines[1] == "Assessment: loop_detected, confidence 0.50"


def test_what_a_judge_says_at_length_is_cut() -> None:
    reflection = Reflection(verdict=StepVerdict.STUCK, judgment="x" * 5000, confidence=0.5)
    assert len(reflection.judgment) == 1000


# -- the rules ------------------------------------------------------------------------------------


@given(EXECUTIONS, st.integers(1, 8))
def test_the_rules_give_the_same_state_the_same_number_from_0_to_1(
    executions: list[ToolExecution], window: int
) -> None:
    state = after(executions)
    reflection = judge_by_rules(state, window=window)
    assert reflection == judge_by_rules(state, window=window)
    assert 0.0 <= reflection.confidence <= 1.0
    recent = [e for e in executions[-window:] if e.succeeded and not found_nothing(e)]
    fresh = {(e.tool_name, str(e.arguments), e.result) for e in recent}
    assert reflection.confidence == len(fresh) / window


@given(EXECUTIONS, st.integers(1, 8))
def test_a_call_that_fails_never_raises_the_confidence_of_the_rules(
    executions: list[ToolExecution], window: int
) -> None:
    before = judge_by_rules(after(executions), window=window + 1)
    failed = ToolExecution(tool_name="a", error="no", iteration=9)
    behind = judge_by_rules(after([*executions[-window:], failed]), window=window + 1)
    if len(executions) <= window:
        assert behind.confidence <= before.confidence
    assert behind.verdict in (StepVerdict.STUCK, StepVerdict.LOOP)


def ran(*outcomes: tuple[str, str | None]) -> AgentState:
    return after(
        [
            ToolExecution(tool_name=name, key=name, result=result, error=None if result else "no", iteration=n // 2)
            for n, (name, result) in enumerate(outcomes)
        ]
    )


@pytest.mark.parametrize(
    ("state", "verdict", "confidence"),
    [
        (ran(("a", "1"), ("b", "2")), StepVerdict.NEW_FINDINGS, 2 / 6),
        (ran(("a", "1"), ("b", None)), StepVerdict.ON_TRACK, 1 / 6),
        (ran(("a", None), ("b", None)), StepVerdict.STUCK, 0.0),
        (ran(("a", "1"), ("b", "2"), ("a", "1"), ("c", "3")), StepVerdict.ON_TRACK, 3 / 6),
        (ran(("a", "1"), ("b", "2"), ("a", "2"), ("c", "3")), StepVerdict.NEW_FINDINGS, 4 / 6),
        (ran(*[(name, f"about {name}") for name in "abcdef"]), StepVerdict.NEW_FINDINGS, 1.0),
        (ran(*[("a", "1"), ("b", "2")] * 3), StepVerdict.LOOP, 2 / 6),
        (ran(), StepVerdict.ON_TRACK, 0.0),
    ],
)
def test_the_rules_look_for_new_results(state: AgentState, verdict: StepVerdict, confidence: float) -> None:
    reflection = judge_by_rules(state, window=6)
    assert (reflection.verdict, reflection.confidence) == (verdict, confidence)
    assert reflection.judgment


def searched(*results: str) -> AgentState:
    """One search a turn, each with words of its own."""
    return after(
        [
            ToolExecution(tool_name="search", key=f"k{n}", arguments={"words": f"word {n}"}, result=result, iteration=n)
            for n, result in enumerate(results)
        ]
    )


EMPTY_RESULTS = [
    "",
    "[]",
    "{}",
    "null",
    '""',
    "No results.",
    "no results found for 'word 3'",
    "0 matches",
    "Found no matching documents.",
    "Nothing was found.",
    "not found",
    "results: 0",
    "We could not find anything.",
    '{"results": [], "took_ms": 3}',
    '{"query": "word 1", "items": null, "total": 0}',
    '{"data": {}, "status": "ok"}',
    "Keine Treffer.",
    "Aucun r\u00e9sultat.",
    "Sin resultados",
    "\u6ca1\u6709\u627e\u5230\u7ed3\u679c",
]


@pytest.mark.parametrize("result", EMPTY_RESULTS)
def test_searches_that_find_nothing_are_a_stall(result: str) -> None:
    first, *others = [judge_by_rules(searched(*[result] * n), window=6) for n in range(1, 9)]
    assert first.verdict is StepVerdict.ON_TRACK
    assert {each.verdict for each in others[1:]} == {StepVerdict.STUCK}
    assert {each.confidence for each in (first, *others)} == {0.0}
    assert all(each.guidance for each in others[1:])


@pytest.mark.parametrize(
    "result",
    [
        "3 results",
        "10 results: a, b",
        '{"results": [{"id": 0}]}',
        '{"balance": 0, "currency": "EUR"}',
        "0",
        "false",
        "ok",
        "The hotel has no free rooms on the 4th, but 12 on the 5th. " + "It is near the station. " * 15 + "No results.",
    ],
)
def test_a_result_that_says_something_is_new(result: str) -> None:
    reflection = judge_by_rules(searched(result), window=6)
    assert (reflection.verdict, reflection.confidence) == (StepVerdict.NEW_FINDINGS, 1 / 6)


def test_words_that_were_asked_for_do_not_count_as_the_answer() -> None:
    asked = ToolExecution(tool_name="search", arguments={"q": "no results page"}, result="no results page: line 4")
    assert not found_nothing(asked)


def test_a_finding_ends_a_stall() -> None:
    reflection = judge_by_rules(searched(*["No results."] * 5, "Flight AA-181"), window=6)
    assert reflection.verdict is StepVerdict.NEW_FINDINGS


def test_empty_results_of_one_batch_are_not_yet_a_stall() -> None:
    batch = [ToolExecution(tool_name="search", key=str(n), result="[]") for n in range(5)]
    assert judge_by_rules(after(batch), window=6).verdict is StepVerdict.ON_TRACK
