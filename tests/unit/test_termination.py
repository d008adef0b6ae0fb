"""Termination conditions one by one: what each reads, where it flips, what it says, and how it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve, frozen

from locus.core.errors import ConditionError, ConfigError
from locus.core.messages import Message, Role, TextBlock, ToolCall, ToolResult
from locus.core.state import AgentState, ToolExecution
from locus.core.termination import (
    AndCondition,
    Bound,
    Bounds,
    ConfidenceMet,
    CostLimit,
    CustomCondition,
    Deadline,
    MaxIterations,
    NoProgress,
    NotCondition,
    NoToolCalls,
    OrCondition,
    Satisfied,
    TerminationCondition,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
    effective,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SEARCH = Message(Role.ASSISTANT, (TextBlock("FINAL words"), ToolCall("1", "search")))


def state(**changes: Any) -> AgentState:
    return evolve(AgentState(run_id="run", started_at=NOON, updated_at=NOON), **changes)


def says(text: str) -> Message:
    return Message(Role.ASSISTANT, text)


def ran(name: str, key: str = "", **changes: Any) -> ToolExecution:
    return evolve(ToolExecution(tool_name=name, key=key, result="ok"), **changes)


def after(*executions: ToolExecution, **changes: Any) -> AgentState:
    built = state(**changes)
    for execution in executions:
        built = built.with_tool_execution(execution)
    return built


def turns(*keys: str, **changes: Any) -> AgentState:
    """A state after turns with one call for each letter of their keys."""
    return after(*[ran(key, key, iteration=at) for at, turn in enumerate(keys) for key in turn], **changes)


def is_large(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["amount"] > 100)


def is_done(seen: AgentState) -> bool:
    return seen.metadata.get("done", False) is True


# -- the leaves -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "below", "at"),
    [
        (MaxIterations(3), state(iteration=2), state(iteration=3)),
        (
            TokenLimit(100),
            state(prompt_tokens_used=60, completion_tokens_used=40),
            state(prompt_tokens_used=101),
        ),
        (
            TokenLimit(),
            state(prompt_tokens_used=5, token_budget=5),
            state(prompt_tokens_used=6, token_budget=5),
        ),
        (TimeLimit(60), state(active_seconds=59.9), state(active_seconds=60.0)),
        (TimeLimit(timedelta(minutes=1)), state(active_seconds=59.9), state(active_seconds=60.0)),
        (
            Deadline(NOON + timedelta(seconds=5)),
            state(updated_at=NOON + timedelta(seconds=4)),
            state(updated_at=NOON + timedelta(seconds=5)),
        ),
        (CostLimit(0.5), state(cost=0.49), state(cost=0.5)),
        (ConfidenceMet(0.9), state(confidence=0.89), state(confidence=0.9)),
        (
            ConfidenceMet(),
            state(confidence=0.69, confidence_threshold=0.7),
            state(confidence=0.7, confidence_threshold=0.7),
        ),
        (NoToolCalls(), state(messages=(SEARCH,)), state(messages=(says("done"),))),
        (ToolCalled("submit"), after(ran("search")), after(ran("search"), ran("submit"))),
        (TextMention("FINAL"), state(messages=(says("final"),)), state(messages=(says("the FINAL one"),))),
        (CustomCondition(is_done), state(), state().with_metadata("done", True)),
        (NoProgress(3), turns("k", "k"), turns("k", "k", "k")),
        (NoProgress(), turns("k", "k", "k", tool_loop_threshold=4), turns("k", "k", "k")),
    ],
    ids=[
        "MaxIterations",
        "TokenLimit",
        "TokenLimit of the state",
        "TimeLimit",
        "TimeLimit as a timedelta",
        "Deadline",
        "CostLimit",
        "ConfidenceMet",
        "ConfidenceMet of the state",
        "NoToolCalls",
        "ToolCalled",
        "TextMention",
        "CustomCondition",
        "NoProgress",
        "NoProgress of the state",
    ],
)
def test_a_leaf_flips_at_its_threshold(condition: TerminationCondition, below: AgentState, at: AgentState) -> None:
    assert not condition.check(below)
    assert condition.check(at)
    assert condition.evaluate(below) is None
    found = condition.evaluate(at)
    assert found is not None
    assert (found.reason, found.leaves) == (type(condition).__name__, (type(condition).__name__,))
    assert found.detail == condition.explain(at).text != ""


def test_token_limit_without_a_number_or_a_budget_never_stops() -> None:
    assert not TokenLimit().check(state(prompt_tokens_used=10**9))


def test_an_answer_sent_back_for_revision_is_not_final() -> None:
    sent_back = state(messages=(says("FINAL"),), pending_revision=True)
    assert not NoToolCalls().check(sent_back)
    assert not TextMention("FINAL").check(sent_back)


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (Message(Role.USER, "FINAL"),),
        (SEARCH,),
        (SEARCH, Message(Role.TOOL, (ToolResult("1", "FINAL"),))),
    ],
)
def test_only_an_assistant_message_without_tool_calls_at_the_end_is_an_answer(
    messages: tuple[Message, ...],
) -> None:
    assert not NoToolCalls().check(state(messages=messages))
    assert not TextMention("FINAL").check(state(messages=messages))


def test_text_mention_searches_with_inline_flags() -> None:
    assert TextMention(r"(?i)answer:\s*\d+$").check(state(messages=(says("So.\nANSWER: 42"),)))
    assert TextMention("(?i)ÉTÉ").check(state(messages=(says("\ud800 été"),)))


@pytest.mark.parametrize("regex", ["(a+)+$", "(a|a)+$", r"(\w+\s?)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_meets_an_answer_that_keeps_it_busy(regex: str) -> None:
    """An engine that backtracks tries 2**40 ways, or 100,000**20."""
    assert not TextMention(regex).check(state(messages=(says("a" * 100_000 + "!"),)))


def test_tool_called_needs_success_unless_told_otherwise() -> None:
    failed = after(ran("submit", result=None, error="ValueError: no"))
    refused = after(ran("submit", result=None, error="Rejected: no", started=False))
    cached = after(ran("submit", cache_hit=True))
    assert [ToolCalled("submit").check(s) for s in (failed, refused, cached)] == [False, False, True]
    relaxed = ToolCalled("submit", require_success=False)
    assert [relaxed.check(s) for s in (failed, refused, cached)] == [True, False, True]


def test_tool_called_asks_its_predicate_about_the_arguments() -> None:
    condition = ToolCalled("pay", is_large)
    small = after(ran("pay", arguments={"amount": 5}))
    assert not condition.check(small)
    assert condition.check(small.with_tool_execution(ran("pay", arguments={"amount": 500}, iteration=1)))


def test_no_progress_compares_keys_counts_cache_hits_and_falls_back_to_arguments() -> None:
    again: dict[str, Any] = {"iteration": 1}
    assert NoProgress(2).check(after(ran("a", "k"), ran("a", "k", cache_hit=True, **again)))
    assert not NoProgress(2).check(after(ran("a", "k"), ran("a", "other", **again)))
    assert NoProgress(2).check(after(ran("a", arguments={"x": 1}), ran("a", arguments={"x": 1}, **again)))
    assert not NoProgress(2).check(after(ran("a", arguments={"x": 1}), ran("a", arguments={"x": 2}, **again)))
    assert not NoProgress(2).check(turns("k", "l", "k"))


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        (["kkkkk"], 1),  # a batch is one turn, however often a call is in it
        (["k", "kkk"], 2),
        (["kl", "lk", "klk"], 3),  # the order of a batch makes no difference
        (["k", "kl", "k"], 1),
        (["l", "k", "k"], 2),
        ([], 0),
    ],
)
def test_no_progress_counts_turns_with_the_same_calls(keys: list[str], count: int) -> None:
    seen = turns(*keys)
    assert NoProgress(9).explain(seen).value == count
    assert [NoProgress(n).check(seen) for n in (2, 3)] == [count >= 2, count >= 3]


@pytest.mark.parametrize("threshold", [0, 1])
def test_no_progress_is_off_where_the_state_s_threshold_makes_no_loop(threshold: int) -> None:
    assert not NoProgress().check(turns("k", "k", tool_loop_threshold=threshold))


def test_a_predicate_is_called_once_for_a_state_whatever_is_asked_and_however_often_it_is_in_the_tree() -> None:
    seen: list[int] = []

    def counted(asked: AgentState) -> bool:
        seen.append(asked.iteration)
        return asked.iteration > 0

    leaf = CustomCondition(counted)
    tree = (leaf & MaxIterations(9)) | ~leaf & TokenLimit(5) | (leaf & CustomCondition(counted))
    now = state()
    for ask in (tree.evaluate, tree.refute, tree.check, tree.explain, leaf.reading):
        ask(now)
    assert seen == [0]
    after_it = now.with_iteration(1)
    found = tree.evaluate(after_it)
    assert found is not None
    assert found.leaves == ("CustomCondition", "CustomCondition")
    assert tree.explain(after_it).satisfied
    assert seen == [0, 1]


# -- predicates that go wrong ---------------------------------------------------------------------


def raises(_: object) -> bool:
    raise ZeroDivisionError("oh")


@pytest.mark.parametrize("condition", [CustomCondition(raises, name="mine"), ToolCalled("pay", raises)], ids=repr)
def test_a_predicate_that_raises_is_a_condition_error_with_its_cause(condition: TerminationCondition) -> None:
    seen = after(ran("pay"))
    for ask in (condition.check, condition.evaluate, condition.refute, (condition | MaxIterations(1)).check):
        with pytest.raises(ConditionError, match=f"condition {condition.name} raised ZeroDivisionError: oh") as e:
            ask(seen)
        assert isinstance(e.value.cause, ZeroDivisionError)
        assert e.value.__cause__ is e.value.cause
        assert e.value.name == condition.name


@pytest.mark.parametrize("answer", [1, None, "yes"])
def test_a_predicate_that_answers_with_something_else_is_an_error_that_shows_it(answer: Any) -> None:
    with pytest.raises(ConditionError, match=f"returned {answer!r}; a predicate returns True or False"):
        CustomCondition(lambda _: answer).check(state())
    with pytest.raises(ConditionError, match=re.escape(repr(answer))):
        ToolCalled("pay", lambda _: answer).check(after(ran("pay")))


def test_a_predicate_that_hides_a_coroutine_is_an_error_without_a_warning() -> None:
    async def slow(_: AgentState) -> bool:
        return True

    hidden: Any = lambda seen: slow(seen)  # noqa: E731 - a plain function that returns a coroutine
    with pytest.raises(ConditionError, match="returned <coroutine object"):
        CustomCondition(hidden).check(state())


def test_a_condition_of_a_plugin_that_raises_is_a_condition_error_within_a_tree() -> None:
    @frozen(repr=False)
    class Broken(TerminationCondition):
        def check(self, state: AgentState) -> bool:
            raise LookupError("no such thing")

    with pytest.raises(ConditionError, match="condition Broken raised LookupError"):
        (Broken() | MaxIterations(1)).evaluate(state())


# -- composition ----------------------------------------------------------------------------------

DONE = ToolCalled("submit") & ConfidenceMet(0.9)


def test_and_reports_its_leaves_and_or_the_satisfied_branch() -> None:
    condition = DONE | MaxIterations(10)
    finished = after(ran("submit", iteration=1), confidence=0.93, iteration=1)
    assert condition.evaluate(finished) == Satisfied(
        "ToolCalled AND ConfidenceMet",
        ("ToolCalled", "ConfidenceMet"),
        "submit was called in iteration 2; confidence 0.93, needs 0.90",
    )
    assert condition.evaluate(state(iteration=10)) == Satisfied(
        "MaxIterations", ("MaxIterations",), "10 of 10 iterations"
    )


def test_an_or_inside_an_and_reports_the_branch_that_holds() -> None:
    condition = (TextMention("x") | ConfidenceMet(0.5)) & ~MaxIterations(3)
    found = condition.evaluate(state(confidence=0.6))
    assert found is not None
    assert found.reason == "ConfidenceMet AND NOT MaxIterations"


def test_not_reports_what_it_negates_and_the_leaves_that_decided() -> None:
    found = (~DONE).evaluate(state())
    assert found is not None
    assert (found.reason, found.leaves) == ("NOT (ToolCalled AND ConfidenceMet)", ("NOT ToolCalled",))
    found = (~(DONE | MaxIterations(3))).evaluate(after(ran("submit")))
    assert found is not None
    assert found.reason == "NOT ((ToolCalled AND ConfidenceMet) OR MaxIterations)"
    assert found.leaves == ("NOT ConfidenceMet", "NOT MaxIterations")


def test_a_named_custom_condition_is_reported_by_its_name() -> None:
    found = CustomCondition(is_done, name="reviewed").evaluate(state().with_metadata("done", True))
    assert found == Satisfied("reviewed", ("reviewed",), "is_done returned True")


def test_chains_are_flat_and_double_negation_cancels_out() -> None:
    a, b, c = MaxIterations(1), NoToolCalls(), TokenLimit(5)
    assert a | (b | c) == OrCondition(a, b, c)
    assert (a & b) & c == AndCondition(a, b, c)
    assert a & b != b & a
    assert a & b != a | b
    assert ~~a is a
    assert isinstance(~a, NotCondition)


@pytest.mark.parametrize(
    "misuse",
    [lambda c: c and c, lambda c: c or c, lambda c: not c, bool],
    ids=["and", "or", "not", "bool"],
)
def test_python_s_own_and_or_not_are_refused_with_the_operators_to_use(
    misuse: Callable[[TerminationCondition], object],
) -> None:
    with pytest.raises(TypeError, match=r"compose with &, \| and ~"):
        misuse(MaxIterations(3))


@pytest.mark.parametrize(
    ("other", "hint"),
    [
        (MaxIterations, r"call it: MaxIterations\(...\)"),
        (is_done, "wrap a function in CustomCondition"),
        (3, "conditions combine with conditions only"),
        (None, "None is not a termination condition"),
    ],
)
def test_only_conditions_compose(other: Any, hint: str) -> None:
    for compose in (
        lambda: NoToolCalls() & other,
        lambda: NoToolCalls() | other,
        lambda: other & NoToolCalls(),
        lambda: other | NoToolCalls(),
        lambda: NotCondition(other),
    ):
        with pytest.raises(TypeError, match=hint):
            compose()


def test_a_composite_needs_two_branches() -> None:
    with pytest.raises(ValueError, match="AndCondition got 1 conditions; it joins two or more"):
        AndCondition(NoToolCalls())


# -- refused at build -----------------------------------------------------------------------------


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, _: object) -> bool:
        return True


async def asynchronous(_: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MaxIterations(0), r"MaxIterations\(n\) must be an integer, 1 or more, got 0"),
        (lambda: MaxIterations(True), "got True"),
        (lambda: MaxIterations(2.5), "got 2.5"),  # type: ignore[arg-type]
        (lambda: TokenLimit(-1), r"TokenLimit\(n\) must be an integer, 0 or more, got -1"),
        (lambda: TimeLimit(-0.5), r"TimeLimit\(seconds\) must be .* got -0.5"),
        (lambda: TimeLimit(float("inf")), "finite"),
        (lambda: TimeLimit(timedelta(seconds=-1)), "got -1.0"),
        (lambda: CostLimit(float("nan")), r"CostLimit\(dollars\) must be .* got nan"),
        (lambda: CostLimit(1.0, unknown_price=-1), r"CostLimit\(unknown_price\) must be .* got -1"),
        (lambda: ConfidenceMet(1.5), "0.0 to 1.0"),
        (lambda: ConfidenceMet(float("nan")), "got nan"),
        (lambda: Deadline(datetime(2026, 1, 1)), "without a time zone"),  # noqa: DTZ001 - that is the point
        (lambda: Deadline("tomorrow"), "Invalid isoformat"),
        (lambda: Deadline(5), "must be a datetime with a time zone, got 5"),  # type: ignore[arg-type]
        (lambda: ToolCalled(""), "must be the name of a tool, got ''"),
        (lambda: ToolCalled(["submit"]), "name of a tool"),  # type: ignore[arg-type]
        (lambda: ToolCalled("submit", require_success=1), "True or False"),  # type: ignore[arg-type]
        (lambda: TextMention("(unclosed"), r"must be a regular expression, got '\(unclosed': .*missing"),
        (lambda: TextMention("(?<!not )done"), r"'\(\?<!not \)done' is refused: .*without look-around"),
        (lambda: TextMention(r"(a)\1"), "back-references"),
        (lambda: TextMention(r"\bété"), r"write \(\?:\^\|\\PL\)"),
        (lambda: TextMention(re.compile("x")), "must be a string"),  # type: ignore[arg-type]
        (lambda: NoProgress(1), "2 or more"),
        (lambda: CustomCondition(is_done, name=""), r"CustomCondition\(name\) must be .* got ''"),
    ],
)
def test_a_wrong_argument_is_refused_at_build_with_its_value(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "3 is not a function"),
        (asynchronous, "coroutine function"),
        (Unhashable(), "cannot be hashed"),
    ],
)
def test_what_cannot_be_a_predicate_is_refused_at_build(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        CustomCondition(given)
    with pytest.raises(TypeError, match=message):
        ToolCalled("pay", given)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("is_done", "'is_done' is not a dotted name"),
        ("no_such_package.f", "the module 'no_such_package' was not found"),
        ("re.no_such_function", "cannot find the function 're.no_such_function'"),
        ("datetime.datetime.no_such_method", "cannot find the function"),
    ],
)
def test_a_dotted_name_that_leads_nowhere_is_a_configuration_error(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CustomCondition(name)


# -- bounds ---------------------------------------------------------------------------------------


def test_an_or_guarantees_the_least_and_an_and_the_greatest_of_what_all_guarantee() -> None:
    either = (DONE | TokenLimit(15_000) | MaxIterations(10) | MaxIterations(7)).bounds()
    assert (either.iterations, either.seconds, either.guarantees_halt) == (7, None, True)
    assert either.tokens is not None
    assert either.tokens.limit == 15_000
    assert either.tokens.overshoot
    assert (MaxIterations(3) & MaxIterations(5)).bounds().iterations == 5
    assert (MaxIterations(3) & NoToolCalls()).bounds() == Bounds()
    assert (~MaxIterations(3)).bounds() == Bounds()


def test_tokens_and_dollars_guarantee_no_halt_because_a_provider_may_report_none() -> None:
    assert not (TokenLimit(10) | CostLimit(1.0) | NoToolCalls() | TokenLimit()).bounds().guarantees_halt
    assert TimeLimit(5).bounds().guarantees_halt
    assert Deadline(NOON).bounds() == Bounds(guarantees_halt=True)


def test_an_and_of_different_units_guarantees_a_halt_but_no_ceiling() -> None:
    assert (MaxIterations(3) & TimeLimit(5)).bounds() == Bounds(guarantees_halt=True)


def test_bounds_see_through_negation() -> None:
    assert (~(~MaxIterations(3) | ~MaxIterations(5))).bounds().iterations == 5
    assert NotCondition(NotCondition(CostLimit(2.0))).bounds().dollars == CostLimit(2.0).bounds().dollars


def test_bounds_are_json() -> None:
    assert TimeLimit(5).bounds().to_json() == {
        "iterations": None,
        "tokens": None,
        "seconds": {"limit": 5.0, "overshoot": TimeLimit(1).bounds().seconds.overshoot},  # type: ignore[union-attr]
        "dollars": None,
        "tool_calls": None,
        "guarantees_halt": True,
    }
    assert Bound(1.0, "b") < Bound(2.0, "a")


# -- explanation ----------------------------------------------------------------------------------


def test_explain_prints_the_tree_with_values_and_thresholds() -> None:
    condition = DONE | MaxIterations(10) | ~TokenLimit(15_000) | CustomCondition(raises, name="broken")
    explained = condition.explain(after(ran("submit"), confidence=0.62, iteration=2, prompt_tokens_used=8211))
    assert str(explained) == "\n".join(
        [
            "[x] OR",
            "    [ ] AND",
            "        [x] ToolCalled: submit was called in iteration 1",
            "        [ ] ConfidenceMet: confidence 0.62, needs 0.90",
            "    [ ] MaxIterations: 2 of 10 iterations",
            "    [x] NOT",
            "        [ ] TokenLimit: 8,211 of 15,000 tokens",
            "    [!] broken: condition broken raised ZeroDivisionError: oh",
        ]
    )
    limit = explained.children[1]
    assert (limit.value, limit.threshold, limit.distance) == (2, 10, 8)


def test_the_distance_is_what_is_missing_to_be_satisfied() -> None:
    limit = TokenLimit(10)
    assert [limit.explain(state(prompt_tokens_used=n)).distance for n in (9, 10, 11, 12)] == [2, 1, 0, 0]


def test_a_predicate_that_raises_makes_the_outcome_unknown_only_where_check_would_raise() -> None:
    broken = CustomCondition(raises)
    assert (NoToolCalls() & broken).explain(state()).satisfied is False
    assert (broken & NoToolCalls()).explain(state()).satisfied is None
    assert (~broken).explain(state()).satisfied is None
    assert (MaxIterations(1) | broken).explain(state(iteration=1)).satisfied is True


# -- the effective condition ----------------------------------------------------------------------


def test_an_agent_without_a_condition_gets_the_default_bound_and_no_tool_calls() -> None:
    assert effective() == (MaxIterations(20) | NoToolCalls(), True)


def test_the_parts_are_in_the_order_of_reporting() -> None:
    condition, added = effective(
        DONE, max_iterations=10, terminal_tools=["finish", "done"], implicit_no_tool_calls=True
    )
    expected = DONE | MaxIterations(10) | ToolCalled("done") | ToolCalled("finish") | NoToolCalls()
    assert (condition, added) == (expected, False)


def test_a_condition_that_guarantees_a_halt_gets_no_other_bound() -> None:
    assert effective(TimeLimit(60)) == (TimeLimit(60) | NoToolCalls(), False)
    assert effective(TokenLimit(60)) == (TokenLimit(60) | MaxIterations(20) | NoToolCalls(), True)
    assert effective(DONE & MaxIterations(5))[1]


def test_a_branch_that_is_there_is_not_repeated_and_no_tool_calls_can_be_left_out() -> None:
    own = NoToolCalls() | MaxIterations(5)
    assert effective(own, max_iterations=5) == (own, False)
    assert effective(MaxIterations(5), implicit_no_tool_calls=False) == (MaxIterations(5), False)


@pytest.mark.parametrize(
    ("tokens", "seconds", "dollars", "said"),
    [
        (10, 4.9, 0.9, None),
        (11, 0.0, 0.0, "TokenLimit"),
        (0, 5.0, 0.0, "TimeLimit"),
        (0, 0.0, 1.0, "CostLimit"),
        (11, 5.0, 1.0, "TokenLimit"),
    ],
)
def test_a_ceiling_says_when_it_is_reached(tokens: int, seconds: float, dollars: float, said: str | None) -> None:
    bounds = Bounds(tokens=Bound(10, ""), seconds=Bound(5.0, ""), dollars=Bound(1.0, ""))
    assert bounds.find_reached(tokens=tokens, seconds=seconds, dollars=dollars) == said
    assert Bounds().find_reached(tokens=tokens, seconds=seconds, dollars=dollars) is None
