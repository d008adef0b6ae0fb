"""What conditions look like from outside: repr, JSON, pickle, and conditions that plugins bring."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from attrs import frozen

from locus.core.errors import ConfigError, NotSerialisable, UnknownName
from locus.core.messages import Message, Role
from locus.core.state import AgentState, ToolExecution
from locus.core.termination import (
    ConfidenceMet,
    CustomCondition,
    Deadline,
    MaxIterations,
    NotCondition,
    NoToolCalls,
    Reading,
    TerminationCondition,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
    condition_from_json,
    condition_types,
    register_condition,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
DONE = ToolCalled("submit") & ConfidenceMet(0.9)


def is_large(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["amount"] > 100)


def is_done(seen: AgentState) -> bool:
    return seen.metadata.get("done", False) is True


# -- forms ----------------------------------------------------------------------------------------


def test_repr_is_the_expression() -> None:
    condition = (DONE | MaxIterations(10)) & ~(NoToolCalls() | TokenLimit())
    assert repr(condition) == (
        "((ToolCalled('submit') & ConfidenceMet(0.9)) | MaxIterations(10)) & ~(NoToolCalls() | TokenLimit())"
    )
    assert repr(ToolCalled("pay", require_success=False)) == "ToolCalled('pay', require_success=False)"
    assert repr(CustomCondition(is_done)) == f"CustomCondition('{__name__}.is_done')"
    assert repr(CustomCondition(lambda _: True)).startswith("CustomCondition(<")
    assert repr(Deadline(NOON)) == "Deadline('2026-05-04T12:00:00+00:00')"


def test_a_deadline_is_an_instant_whatever_its_time_zone() -> None:
    here = Deadline(datetime(2026, 5, 4, 14, tzinfo=timezone(timedelta(hours=2))))
    assert here == Deadline(NOON) == Deadline("2026-05-04T12:00:00Z")
    assert hash(here) == hash(Deadline(NOON))
    assert repr(here) == repr(Deadline(NOON))


def test_json_spells_out_the_arguments() -> None:
    condition = ~CustomCondition(is_done) | ToolCalled("pay", is_large)
    assert condition.to_json() == {
        "type": "OrCondition",
        "conditions": [
            {
                "type": "NotCondition",
                "condition": {"type": "CustomCondition", "fn": f"{__name__}.is_done", "name": None},
            },
            {
                "type": "ToolCalled",
                "name": "pay",
                "predicate": f"{__name__}.is_large",
                "require_success": True,
            },
        ],
    }
    assert condition_from_json(condition.to_json()) == condition


def local_function() -> Callable[[AgentState], bool]:
    def inner(_: AgentState) -> bool:
        return True

    return inner


class Checker:
    def check(self, _: AgentState) -> bool:
        return True


@pytest.mark.parametrize(
    "fn",
    [lambda _: True, local_function(), partial(is_done), Checker().check],
    ids=["lambda", "local", "partial", "method"],
)
def test_a_function_that_cannot_be_named_has_no_json_form_and_the_leaf_is_named(fn: Any) -> None:
    with pytest.raises(NotSerialisable, match="cannot be imported by name; use a function") as e:
        (MaxIterations(3) | CustomCondition(fn)).to_json()
    assert e.value.path.startswith("CustomCondition(<")


def test_a_pattern_and_a_predicate_survive_pickle() -> None:
    condition = TextMention("x+") & ToolCalled("pay", is_large)
    copy = pickle.loads(pickle.dumps(condition))
    assert copy == condition
    paid = AgentState(messages=(Message(Role.ASSISTANT, "xx"),)).with_tool_execution(
        ToolExecution(tool_name="pay", arguments={"amount": 500})
    )
    assert copy.check(paid)


def test_conditions_are_frozen_and_hashable() -> None:
    condition = MaxIterations(3)
    with pytest.raises(AttributeError):
        condition.n = 4  # type: ignore[misc]
    assert {condition | NoToolCalls(), MaxIterations(3) | NoToolCalls()} == {condition | NoToolCalls()}


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"type": "MaxIteration", "n": 3}, UnknownName, "did you mean 'MaxIterations'"),
        ({"type": "MaxIterations", "m": 3}, UnknownName, "unknown argument of MaxIterations 'm'"),
        ({"type": "MaxIterations"}, ConfigError, "MaxIterations: .*missing"),
        ({"type": "MaxIterations", "n": 0}, ConfigError, "MaxIterations: .* got 0"),
        ({"type": "AndCondition"}, ConfigError, "AndCondition lacks its argument 'conditions'"),
        ({"type": "NotCondition", "condition": 3}, ConfigError, "3 is not a condition"),
        ({"n": 3}, ConfigError, "it looks like"),
        (["MaxIterations"], ConfigError, "it looks like"),
    ],
)
def test_a_wrong_json_form_is_refused_with_what_is_wrong(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        condition_from_json(data)


# -- a plugin's own -------------------------------------------------------------------------------


@register_condition
@frozen(repr=False)
class MessagesAtLeast(TerminationCondition):
    count: int
    since: tuple[float, ...] = ()

    def check(self, state: AgentState) -> bool:
        return len(state.messages) >= self.count

    def reading(self, state: AgentState) -> Reading:
        return Reading(len(state.messages), self.count, text="messages")


def test_a_registered_condition_is_like_the_kernel_s_own() -> None:
    condition = MessagesAtLeast(2, since=(1.5,)) & MaxIterations(3)
    assert condition_from_json(condition.to_json()) == condition
    assert repr(condition) == "MessagesAtLeast(2, (1.5,)) & MaxIterations(3)"
    assert condition_types()["MessagesAtLeast"] is MessagesAtLeast
    assert register_condition(MessagesAtLeast) is MessagesAtLeast


def test_an_unregistered_condition_works_but_has_no_json_form() -> None:
    class Plain(TerminationCondition):
        def check(self, state: AgentState) -> bool:
            return True

    assert (Plain() & MaxIterations(1)).explain(AgentState(iteration=1)).satisfied
    assert repr(Plain()) == "Plain()"
    with pytest.raises(NotSerialisable, match="is not registered"):
        Plain().to_json()
    with pytest.raises(TypeError, match="make it an attrs class"):
        register_condition(Plain)


def test_a_taken_name_is_refused() -> None:
    @frozen(repr=False)
    class MaxIterations(TerminationCondition):
        def check(self, state: AgentState) -> bool:
            return True

    with pytest.raises(ValueError, match="'MaxIterations' is taken by locus"):
        register_condition(MaxIterations)


def test_the_base_class_says_what_is_missing() -> None:
    with pytest.raises(TypeError, match="check"):
        TerminationCondition()  # type: ignore[abstract]


# -- nested deeply ----------------------------------------------------------------------------------


def alternating(levels: int) -> TerminationCondition:
    tree: TerminationCondition = MaxIterations(5)
    for level in range(levels):
        tree = tree | TokenLimit(level) if level % 2 else tree & TokenLimit(level)
    return tree


def negated(levels: int) -> TerminationCondition:
    tree: TerminationCondition = MaxIterations(5)
    for _ in range(levels):
        tree = NotCondition(tree)
    return tree


def mixed(levels: int) -> TerminationCondition:
    tree: TerminationCondition = MaxIterations(5)
    for level in range(levels):
        tree = (tree | TokenLimit(level), tree & TimeLimit(level), ~tree)[level % 3]
    return tree


def form(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"type": "MaxIterations", "n": 5}
    for level in range(levels):
        tree = (
            {"type": "NotCondition", "condition": tree}
            if level % 2
            else {"type": "OrCondition", "conditions": [tree, {"type": "NoToolCalls"}]}
        )
    return tree


@pytest.mark.parametrize("build", [alternating, negated, mixed, lambda n: condition_from_json(form(n))])
@pytest.mark.parametrize("levels", [65, 1_000])
def test_what_is_nested_too_deeply_is_refused_when_it_is_built(
    build: Callable[[int], TerminationCondition], levels: int
) -> None:
    with pytest.raises(ConfigError, match=r"nested 64 levels deep.*a chain of one operator.* is one level"):
        build(levels)


@pytest.mark.parametrize("build", [alternating, negated, mixed, lambda n: condition_from_json(form(n))])
def test_what_can_be_built_can_be_asked_shown_compared_and_written_deep_in_a_program(
    build: Callable[[int], TerminationCondition],
) -> None:
    tree, seen, before = build(64), AgentState(iteration=7), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 500)  # half of what an interpreter has
    try:
        found = tree.explain(seen)
        assert tree.check(seen) is (tree.evaluate(seen) is not None) is (tree.refute(seen) is None) is found.satisfied
        assert len(str(found).splitlines()) > 64
        assert repr(found)
        assert hash(found) == hash(tree.explain(seen))
        assert tree.name
        assert repr(tree)
        assert tree.bounds() == build(64).bounds()
        assert tree.negated_bounds() == build(64).negated_bounds()
        assert condition_from_json(json.loads(json.dumps(tree.to_json()))) == tree
        assert pickle.loads(pickle.dumps(tree)) == copy.deepcopy(tree)
        assert json.dumps(found.to_json())
    finally:
        sys.setrecursionlimit(before)


def test_a_long_chain_of_one_operator_is_one_level() -> None:
    tree: TerminationCondition = MaxIterations(5)
    for n in range(1_000):
        tree = tree | TokenLimit(n)
    assert len(list(tree.leaves())) == 1_001
    assert tree.check(AgentState(iteration=5))
