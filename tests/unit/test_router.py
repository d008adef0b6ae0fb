"""The router and the reflect policies, by example."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve

from locus.core.errors import ConditionError
from locus.core.messages import Message, Role, ToolCall, ToolResult
from locus.core.state import AgentState, ToolExecution
from locus.core.termination import (
    ConfidenceMet,
    CustomCondition,
    MaxIterations,
    NoToolCalls,
    TerminationCondition,
    ToolCalled,
    effective,
)
from locus.loop.router import (
    AnyOf,
    Node,
    Route,
    Router,
    legal,
)
from locus_kit.reflect import EveryIterations, OnToolError

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ANSWER = Message(Role.ASSISTANT, "done")
REQUEST = Message(Role.ASSISTANT, (ToolCall("1", "search"), ToolCall("1", "search")))
RESULT = Message(Role.TOOL, (ToolResult("1", "found"),))
DEFAULT = Router(effective(max_iterations=3)[0])


def state(*messages: Message, **changes: Any) -> AgentState:
    return evolve(AgentState(run_id="run", started_at=NOON, updated_at=NOON, messages=messages), **changes)


# -- the table ------------------------------------------------------------------------------------


def test_think_goes_to_execute_when_the_model_asks_for_tools() -> None:
    assert DEFAULT(Node.THINK, state(REQUEST)) == Route(Node.EXECUTE, "the model asks for tools")


def test_think_goes_to_terminate_when_the_model_answers() -> None:
    route = DEFAULT(Node.THINK, state(ANSWER))
    assert (route.next, route.why) == (Node.TERMINATE, "NoToolCalls: the model has answered")
    assert route.satisfied is not None
    assert route.satisfied.reason == "NoToolCalls"


def test_think_goes_to_think_again_when_the_answer_was_sent_back() -> None:
    feedback = Message(Role.USER, "cite a source")
    seen = state(ANSWER).with_revision(feedback)
    assert DEFAULT(Node.THINK, seen) == Route(Node.THINK, "the answer was sent back for revision")


def test_think_goes_to_think_again_when_an_answer_does_not_end_the_run() -> None:
    router = Router(MaxIterations(3))
    assert router(Node.THINK, state(ANSWER)).next is Node.THINK
    assert router(Node.THINK, state(ANSWER, iteration=2)).next is Node.TERMINATE


def test_think_executes_only_what_has_no_result_yet() -> None:
    router = Router(MaxIterations(3))
    assert router(Node.THINK, state(REQUEST, RESULT)).next is Node.EXECUTE
    assert router(Node.THINK, state(REQUEST, RESULT, RESULT)).next is Node.THINK


def test_calls_without_a_result_are_executed_before_anything_goes_back_to_the_model() -> None:
    assert DEFAULT(Node.THINK, state(REQUEST, pending_revision=True)).next is Node.EXECUTE


def test_execute_and_reflect_go_to_think() -> None:
    answered = state(REQUEST, RESULT, RESULT)
    assert DEFAULT(Node.EXECUTE, answered) == Route(Node.THINK, "the tools have answered")
    assert DEFAULT(Node.REFLECT, answered) == Route(Node.THINK, "the reflection is done")


def test_terminate_stays() -> None:
    assert DEFAULT(Node.TERMINATE, state()) == Route(Node.TERMINATE, "the run is over")


def test_max_iterations_lets_the_last_tools_and_their_reflection_run_but_not_think() -> None:
    router = Router(MaxIterations(3), EveryIterations(1))
    last = state(REQUEST, RESULT, RESULT, iteration=2)
    assert router(Node.THINK, state(REQUEST, iteration=2)).next is Node.EXECUTE
    assert router(Node.EXECUTE, last).next is Node.REFLECT
    route = router(Node.REFLECT, last)
    assert (route.next, route.why) == (Node.TERMINATE, "MaxIterations: 3 of 3 iterations")


def test_an_answer_on_the_last_call_is_an_answer_and_not_the_limit() -> None:
    route = DEFAULT(Node.THINK, state(ANSWER, iteration=2))
    assert route.satisfied is not None
    assert route.satisfied.reason == "NoToolCalls"


def test_the_worked_example_ends_after_the_reflection_of_its_second_iteration() -> None:
    condition = effective((ToolCalled("book") & ConfidenceMet(0.9)) | MaxIterations(8))[0]
    router = Router(condition, AnyOf(EveryIterations(2), OnToolError()))
    first = state(REQUEST, RESULT, RESULT).with_tool_execution(ToolExecution(tool_name="search", key="s"))
    assert router(Node.EXECUTE, first).next is Node.THINK
    booked = first.with_iteration(1).with_tool_execution(ToolExecution(tool_name="book", key="b", iteration=1))
    assert router(Node.EXECUTE, booked) == Route(Node.REFLECT, "every 2 iterations")
    route = router(Node.REFLECT, booked.with_confidence(0.93))
    assert route.next is Node.TERMINATE
    assert route.satisfied is not None
    assert route.satisfied.reason == "ToolCalled AND ConfidenceMet"


def test_a_satisfied_condition_stops_before_the_tools_run() -> None:
    assert Router(CustomCondition(lambda _: True))(Node.THINK, state(REQUEST)).next is Node.TERMINATE


def test_a_satisfied_condition_stops_before_the_reflection_that_is_due() -> None:
    router = Router(ToolCalled("submit"), EveryIterations(1))
    seen = state().with_tool_execution(ToolExecution(tool_name="submit", result="ok"))
    assert router(Node.EXECUTE, seen).next is Node.TERMINATE


def test_a_router_needs_a_condition() -> None:
    with pytest.raises(TypeError, match="condition"):
        Router(None)  # type: ignore[arg-type]


# -- edges ----------------------------------------------------------------------------------------


def test_legal_lists_the_edges_of_the_table() -> None:
    assert legal(Node.THINK) == {Node.EXECUTE, Node.THINK, Node.TERMINATE}
    assert legal(Node.EXECUTE) == {Node.REFLECT, Node.THINK, Node.TERMINATE}
    assert legal(Node.REFLECT) == {Node.THINK, Node.TERMINATE}
    assert legal(Node.TERMINATE) == {Node.TERMINATE}


def test_the_state_narrows_the_edges_after_think() -> None:
    assert legal(Node.THINK, state(REQUEST)) == {Node.EXECUTE, Node.TERMINATE}
    assert legal(Node.THINK, state(ANSWER)) == {Node.THINK, Node.TERMINATE}


def diverted(condition: TerminationCondition, node: Node, seen: AgentState, to: Node) -> Route:
    router = Router(condition)
    return router.divert(node, seen, router(node, seen), to)


def test_a_legal_diversion_is_taken() -> None:
    assert diverted(MaxIterations(3), Node.EXECUTE, state(), Node.REFLECT) == Route(Node.REFLECT, "instead of think")


def test_an_illegal_diversion_is_not_taken() -> None:
    assert diverted(MaxIterations(3), Node.THINK, state(REQUEST), Node.THINK).next is Node.EXECUTE
    assert diverted(MaxIterations(3), Node.EXECUTE, state(), Node.EXECUTE).next is Node.THINK


def test_a_stop_cannot_be_diverted() -> None:
    assert diverted(NoToolCalls(), Node.THINK, state(ANSWER), Node.THINK).next is Node.TERMINATE


def test_a_diversion_to_think_is_bound_by_the_limit() -> None:
    router = Router(MaxIterations(3), EveryIterations(1))
    last = state(iteration=2)
    proposed = router(Node.EXECUTE, last)
    assert proposed.next is Node.REFLECT
    assert router.divert(Node.EXECUTE, last, proposed, Node.THINK).next is Node.TERMINATE


# -- reflect policies -----------------------------------------------------------------------------


def test_any_of_gives_the_first_reason() -> None:
    seen = state(iteration=1)
    assert AnyOf(OnToolError(), EveryIterations(2), EveryIterations(1))(seen) == "every 2 iterations"
    assert AnyOf()(seen) is None


@pytest.mark.parametrize("policy", [lambda _: 1 / 0, lambda _: True], ids=["raises", "returns True"])
def test_a_policy_that_goes_wrong_is_a_condition_error(policy: Any) -> None:
    with pytest.raises(ConditionError, match=r"raised (ZeroDivisionError|TypeError: it returned True)"):
        Router(MaxIterations(3), policy)(Node.EXECUTE, state())


def test_policies_and_routers_are_values() -> None:
    one = Router(MaxIterations(3), AnyOf(EveryIterations(2), OnToolError()))
    other = Router(MaxIterations(3), AnyOf(EveryIterations(2), OnToolError()))
    assert one == other
    assert hash(one) == hash(other)
