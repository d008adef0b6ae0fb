"""The laws of the router, over generated conditions, policies and states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies_core import START, checkpoint_bytes, conditions, states

from locus.core.messages import Message, Role, ToolCall, ToolResult
from locus.core.state import AgentState, ToolExecution
from locus.core.termination import Bounds, TerminationCondition, effective
from locus.loop.router import (
    AnyOf,
    Node,
    ReflectPolicy,
    Route,
    Router,
    legal,
)
from locus_kit.reflect import EveryIterations, OnRepetition, OnToolError

nodes = st.sampled_from(Node)
policies: st.SearchStrategy[ReflectPolicy | None] = st.one_of(
    st.none(),
    st.builds(EveryIterations, st.integers(1, 4)),
    st.just(OnToolError()),
    st.builds(OnRepetition, st.sampled_from([None, 2, 3])),
    st.builds(AnyOf, st.builds(EveryIterations, st.integers(2, 3)), st.just(OnToolError())),
)
routers = st.builds(Router, conditions, policies)


# -- total, pure ----------------------------------------------------------------------------------


@given(routers, nodes, states())
def test_every_node_and_state_has_a_legal_route(router: Router, node: Node, state: AgentState) -> None:
    route = router(node, state)
    assert route.next in legal(node)
    assert route.next in legal(node, state)
    assert route.why
    assert route.satisfied is None or route.next is Node.TERMINATE


@given(routers, nodes, states())
def test_the_same_arguments_give_the_same_route_and_stay_as_they_are(
    router: Router, node: Node, state: AgentState
) -> None:
    before, router_before, bytes_before = evolve(state), repr(router), checkpoint_bytes(state)
    route = router(node, state)
    assert router(node, state) == route
    assert router(node, before) == route
    assert state == before
    assert checkpoint_bytes(state) == bytes_before
    assert repr(router) == router_before


@given(routers, nodes, states())
def test_a_state_read_back_from_a_checkpoint_routes_alike(router: Router, node: Node, state: AgentState) -> None:
    assert router(node, AgentState.from_checkpoint(state.to_checkpoint())) == router(node, state)


def test_routing_touches_no_clock_no_randomness_and_nothing_outside() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.property.purity_probe"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    asked, caught = done.stdout.split()
    assert int(asked) >= 1000
    assert caught == "clock,random,open,socket,environment"


# -- the table ------------------------------------------------------------------------------------


def stops(condition: TerminationCondition, state: AgentState, following: Node) -> bool:
    """Whether the condition ends the run, after the node or right before Think."""
    again = state.with_iteration(state.iteration + 1)
    return condition.check(state) or (following is Node.THINK and condition.check(again))


@given(routers, states())
def test_after_reflect_comes_think_unless_the_run_ends(router: Router, state: AgentState) -> None:
    ends = stops(router.condition, state, Node.THINK)
    assert router(Node.REFLECT, state).next is (Node.TERMINATE if ends else Node.THINK)


@given(routers, states())
def test_after_execute_comes_reflect_when_a_policy_says_so_and_think_otherwise(
    router: Router, state: AgentState
) -> None:
    why = None if router.reflect is None else router.reflect(state)
    following = Node.THINK if why is None else Node.REFLECT
    route = router(Node.EXECUTE, state)
    assert route.next is (Node.TERMINATE if stops(router.condition, state, following) else following)
    if route.next is Node.REFLECT:
        assert route.why == why


answers = st.builds(Message, st.just(Role.ASSISTANT), st.sampled_from(["", "done"]))
calls = st.lists(st.builds(ToolCall, st.sampled_from(["1", "2"]), st.just("search")), min_size=1, max_size=3)
requests = calls.map(lambda made: Message(Role.ASSISTANT, tuple(made)))


@given(routers, states(), requests)
def test_after_think_tool_calls_are_executed(router: Router, state: AgentState, request: Message) -> None:
    asked = state.with_message(request)
    ends = router.condition.check(asked)
    assert router(Node.THINK, asked).next is (Node.TERMINATE if ends else Node.EXECUTE)


@given(st.none() | conditions, policies, states(), answers)
def test_after_think_an_answer_ends_the_run_of_an_agent(
    condition: TerminationCondition | None, policy: ReflectPolicy | None, state: AgentState, answer: Message
) -> None:
    router = Router(effective(condition)[0], policy)
    answered = evolve(state, pending_revision=False).with_message(answer)
    route = router(Node.THINK, answered)
    assert route.next is Node.TERMINATE
    assert route.satisfied is not None
    if condition is None or not condition.check(answered):
        assert route.satisfied.reason in ("NoToolCalls", "MaxIterations")


@given(routers, states(), answers)
def test_after_think_an_answer_goes_back_to_think_where_it_does_not_end_the_run(
    router: Router, state: AgentState, answer: Message
) -> None:
    for sent_back in (True, False):
        seen = evolve(state, messages=(answer,), pending_revision=sent_back)
        ends = stops(router.condition, seen, Node.THINK)
        assert router(Node.THINK, seen).next is (Node.TERMINATE if ends else Node.THINK)


@given(routers, nodes, states())
def test_a_satisfied_condition_wins_over_the_table(router: Router, node: Node, state: AgentState) -> None:
    found = router.condition.evaluate(state)
    if found is not None and node is not Node.TERMINATE:
        route = router(node, state)
        assert (route.next, route.satisfied) == (Node.TERMINATE, found)


# -- diversions -----------------------------------------------------------------------------------


@given(routers, nodes, states(), nodes)
def test_a_diverted_route_is_legal_and_never_escapes_the_condition(
    router: Router, node: Node, state: AgentState, to: Node
) -> None:
    route = router(node, state)
    diverted = router.divert(node, state, route, to)
    assert diverted.next in legal(node, state)
    if route.next is Node.TERMINATE:
        assert diverted is route
    elif to in legal(node, state):
        ends = diverted.next is not route.next and stops(router.condition, state, to)
        assert diverted.next is (Node.TERMINATE if ends else to)
    else:
        assert diverted is route


# -- bounds ---------------------------------------------------------------------------------------


@st.composite
def rounds(draw: st.DrawFn) -> tuple[bool, int, float, float]:
    """One model call: whether it asks for a tool, its tokens, its dollars, and the seconds it takes."""
    return (
        draw(st.sampled_from([True, True, True, False])),
        draw(st.integers(0, 30)),
        draw(st.sampled_from([0.0, 0.2, 1.5])),
        draw(st.sampled_from([0.0, 0.5, 3.0])),
    )


def assert_may_start(bounds: Bounds, state: AgentState) -> None:
    assert bounds.iterations is None or state.iteration + 1 <= bounds.iterations
    assert bounds.tokens is None or state.total_tokens_used <= bounds.tokens.limit
    assert bounds.seconds is None or state.active_seconds < bounds.seconds.limit
    assert bounds.dollars is None or state.cost < bounds.dollars.limit


def simulated(router: Router, script: list[tuple[bool, int, float, float]]) -> tuple[Route | None, int]:
    """Run the loop over a script, as the runner does: the last route, None when the script was too short."""
    bounds, calls_made = router.condition.bounds(), 0
    state = AgentState(run_id="run", started_at=START, updated_at=START, token_budget=50)
    for asks, tokens, dollars, seconds in script:
        if (found := router.condition.evaluate(state)) is not None:
            return Route(Node.TERMINATE, "before the call", found), calls_made
        assert_may_start(bounds, state)
        calls_made += 1
        request = Message(Role.ASSISTANT, (ToolCall("1", "search"),) if asks else "done")
        state = state.with_message(request).with_token_usage(prompt_tokens=tokens, cost=dollars)
        state = evolve(state, active_seconds=state.active_seconds + seconds)
        route = router(Node.THINK, state)
        if route.next is Node.EXECUTE:
            state = state.with_message(Message(Role.TOOL, (ToolResult("1", "ok"),)))
            ran = ToolExecution(tool_name="search", key="search", iteration=state.iteration)
            state = state.with_tool_execution(ran)
            route = router(Node.EXECUTE, state)
        if route.next is Node.REFLECT:
            route = router(Node.REFLECT, state.with_confidence(0.9))
        if route.next is Node.TERMINATE:
            return route, calls_made
        state = state.with_iteration(state.iteration + 1)
    return None, calls_made


@given(routers, st.lists(rounds(), min_size=1, max_size=12))
def test_no_run_starts_a_model_call_beyond_its_bounds(
    router: Router, script: list[tuple[bool, int, float, float]]
) -> None:
    last, calls_made = simulated(router, script)
    bound = router.condition.bounds().iterations
    assert bound is None or calls_made <= bound
    assert last is None or last.next is Node.TERMINATE


@given(routers, st.integers(1, 6))
def test_max_iterations_allows_exactly_so_many_calls(router: Router, n: int) -> None:
    endless = [(True, 0, 0.0, 0.0)] * (n + 1)
    limited, _ = effective(max_iterations=n)
    last, calls_made = simulated(Router(limited, router.reflect), endless)
    assert calls_made == n
    assert last is not None
    assert last.satisfied is not None
    assert last.satisfied.reason == "MaxIterations"


@given(st.none() | conditions, st.booleans())
def test_an_effective_condition_always_ends_a_run_that_would_go_on_for_ever(
    condition: TerminationCondition | None, implicit: bool
) -> None:
    router = Router(effective(condition, implicit_no_tool_calls=implicit)[0])
    assert router.condition.bounds().guarantees_halt
    endless = [(True, 1, 0.1, 1.0)] * 40
    last, _ = simulated(router, endless)
    late = AgentState(iteration=10**6, active_seconds=1e9, started_at=START, updated_at=START.replace(year=9000))
    assert last is not None or router.condition.check(late)


@given(st.none() | conditions, st.none() | st.integers(1, 9), st.sets(st.sampled_from(["done", "submit"])))
def test_the_effective_condition_stops_wherever_a_part_of_it_would(
    condition: TerminationCondition | None, max_iterations: int | None, tools: set[str]
) -> None:
    whole, added = effective(condition, max_iterations=max_iterations, terminal_tools=tools)
    shown = repr(whole)
    assert shown.endswith("NoToolCalls()") or "NoToolCalls()" in repr(condition)
    assert all(f"ToolCalled({tool!r})" in shown for tool in tools)
    assert max_iterations is None or f"MaxIterations({max_iterations})" in shown
    halts = condition is not None and condition.bounds().guarantees_halt
    assert added is (not halts and max_iterations is None)
    assert condition is None or shown.startswith((repr(condition), f"({condition!r})"))
