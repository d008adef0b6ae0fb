"""The laws of the termination algebra, over generated trees and states."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from functools import reduce
from operator import and_, or_

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies_core import (
    START,
    checkpoint_bytes,
    compose,
    conditions,
    growing,
    leaves,
    monotone_leaves,
    states,
)

from locus.core import termination
from locus.core.messages import Message, Role
from locus.core.state import AgentState, ToolExecution
from locus.core.termination import (
    AndCondition,
    CustomCondition,
    Explanation,
    MaxIterations,
    NoProgress,
    NotCondition,
    OrCondition,
    TerminationCondition,
    condition_from_json,
)
from locus.loop.router import Node, Router

NAMES = {name: getattr(termination, name) for name in termination.__all__}


def agree(a: TerminationCondition, b: TerminationCondition, state: AgentState) -> bool:
    """Whether two trees come to the same outcome."""
    return a.check(state) is b.check(state)


# -- algebra --------------------------------------------------------------------------------------


@given(conditions, conditions, conditions, states())
def test_and_and_or_are_associative(
    a: TerminationCondition, b: TerminationCondition, c: TerminationCondition, state: AgentState
) -> None:
    assert (a & b) & c == a & (b & c)
    assert (a | b) | c == a | (b | c)
    assert ((a & b) & c).evaluate(state) == (a & (b & c)).evaluate(state)
    assert ((a | b) | c).evaluate(state) == (a | (b | c)).evaluate(state)


@given(conditions, conditions, states())
def test_and_and_or_are_commutative_in_outcome(
    a: TerminationCondition, b: TerminationCondition, state: AgentState
) -> None:
    assert agree(a & b, b & a, state)
    assert agree(a | b, b | a, state)


@given(conditions, states())
def test_and_and_or_are_idempotent_in_outcome(a: TerminationCondition, state: AgentState) -> None:
    assert agree(a & a, a, state)
    assert agree(a | a, a, state)


@given(conditions, conditions, conditions, states())
def test_and_and_or_distribute_over_each_other(
    a: TerminationCondition, b: TerminationCondition, c: TerminationCondition, state: AgentState
) -> None:
    assert agree(a & (b | c), (a & b) | (a & c), state)
    assert agree(a | (b & c), (a | b) & (a | c), state)


@given(conditions, conditions, states())
def test_and_and_or_absorb_each_other(a: TerminationCondition, b: TerminationCondition, state: AgentState) -> None:
    assert agree(a & (a | b), a, state)
    assert agree(a | (a & b), a, state)


@given(conditions, states())
def test_not_is_the_complement(a: TerminationCondition, state: AgentState) -> None:
    assert (~a).check(state) is not a.check(state)
    assert (a | ~a).check(state)
    assert not (a & ~a).check(state)


@given(conditions.filter(lambda c: not isinstance(c, NotCondition)))
def test_two_negations_cancel_out(a: TerminationCondition) -> None:
    assert ~~a == a
    assert ~~~a == ~a


@given(conditions, conditions, states())
def test_de_morgan_holds_for_outcomes_leaves_and_bounds(
    a: TerminationCondition, b: TerminationCondition, state: AgentState
) -> None:
    for whole, pushed in ((~(a & b), ~a | ~b), (~(a | b), ~a & ~b)):
        left, right = whole.evaluate(state), pushed.evaluate(state)
        assert (left is None) is (right is None)
        assert left is None or right is None or left.leaves == right.leaves
        assert whole.bounds() == pushed.bounds()


# -- evaluation -----------------------------------------------------------------------------------


@given(conditions, states())
def test_check_says_whether_evaluate_finds_something(a: TerminationCondition, state: AgentState) -> None:
    found, refuted = a.evaluate(state), a.refute(state)
    assert a.check(state) is (found is not None)
    assert (found is None) is (refuted is not None)


@given(st.lists(conditions, min_size=2, max_size=4), states())
def test_the_branches_after_the_deciding_one_are_never_asked(
    branches: list[TerminationCondition], state: AgentState
) -> None:
    asked: list[int] = []

    def spied(index: int, branch: TerminationCondition) -> TerminationCondition:
        def spy(seen: AgentState) -> bool:
            asked.append(index)
            return branch.check(seen)

        return CustomCondition(spy)

    spies = [spied(i, branch) for i, branch in enumerate(branches)]
    outcomes = [branch.check(state) for branch in branches]
    for join, decides in ((and_, False), (or_, True)):
        asked.clear()
        whole = reduce(join, spies)
        last = outcomes.index(decides) if decides in outcomes else len(outcomes) - 1
        assert whole.check(evolve(state)) is outcomes[last]  # another state: what was asked of one is known
        assert sorted(set(asked)) == list(range(last + 1))


@given(st.data(), states())
def test_a_predicate_is_asked_at_most_once_a_check(data: st.DataObject, state: AgentState) -> None:
    asked: list[int] = []

    def counted(n: int) -> TerminationCondition:
        def predicate(seen: AgentState) -> bool:
            asked.append(n)
            return (seen.iteration + n) % 3 == 0

        return CustomCondition(predicate)

    pool = [counted(n) for n in range(3)]
    # A bound on iterations that is reached in this check makes the router ask about the next one as well.
    bounds = st.integers(1, state.iteration + 2).map(MaxIterations)
    tree = data.draw(st.recursive(st.sampled_from(pool) | bounds | leaves, compose, max_leaves=8))
    for ask in (tree.evaluate, tree.refute, tree.check, tree.explain):
        ask(state)
    assert len(asked) == len(set(asked))
    router = Router(tree)
    for node in (Node.THINK, Node.EXECUTE, Node.REFLECT):
        asked.clear()
        here = evolve(state)
        router.divert(node, here, router(node, here), Node.THINK)
        assert len(asked) == len(set(asked))


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), max_size=5), st.data(), st.integers(2, 4))
def test_how_often_and_in_which_order_a_turn_makes_its_calls_is_nothing_to_no_progress(
    turns: list[set[str]], data: st.DataObject, window: int
) -> None:
    def after(batches: list[list[str]]) -> AgentState:
        ran = [ToolExecution(tool_name=n, key=n, iteration=at) for at, batch in enumerate(batches) for n in batch]
        return AgentState(tool_executions=ran)

    batches = [
        data.draw(st.permutations([*turn, *data.draw(st.lists(st.sampled_from(sorted(turn))))])) for turn in turns
    ]
    stuck = len(turns) >= window and all(turn == turns[-1] for turn in turns[-window:])
    assert NoProgress(window).check(after(batches)) is NoProgress(window).check(after([*map(list, turns)])) is stuck


def leaf_names(condition: TerminationCondition, state: AgentState) -> set[str]:
    """What may be said truthfully about the leaves of a tree."""
    return {leaf.name if leaf.check(state) else f"NOT {leaf.name}" for leaf in condition.leaves()}


@given(conditions, states())
def test_the_reason_names_leaves_that_are_really_satisfied(a: TerminationCondition, state: AgentState) -> None:
    found = a.evaluate(state)
    if found is not None:
        assert found.leaves
        assert set(found.leaves) <= leaf_names(a, state)


@given(st.lists(leaves, min_size=1, max_size=4), st.lists(leaves, min_size=1, max_size=4), states())
def test_without_negation_the_reason_is_the_leaves_joined(
    first: list[TerminationCondition], second: list[TerminationCondition], state: AgentState
) -> None:
    tree = reduce(and_, first) | reduce(and_, second)
    found = tree.evaluate(state)
    chosen = next((b for b in (first, second) if all(leaf.check(state) for leaf in b)), None)
    assert (found is None) is (chosen is None)
    if found is not None and chosen is not None:
        assert found.leaves == tuple(leaf.name for leaf in chosen)
        assert found.reason == " AND ".join(found.leaves)


@given(monotone_leaves, growing())
def test_monotone_leaves_stay_satisfied_as_the_state_grows(
    leaf: TerminationCondition, run: tuple[AgentState, AgentState]
) -> None:
    state, later = run
    assert leaf.check(later) or not leaf.check(state)


@given(conditions, states())
def test_asking_changes_nothing(a: TerminationCondition, state: AgentState) -> None:
    before, bytes_before = repr(a), checkpoint_bytes(state)
    first = (a.evaluate(state), a.explain(state), a.bounds())
    assert (a.evaluate(state), a.explain(state), a.bounds()) == first
    assert repr(a) == before
    assert checkpoint_bytes(state) == bytes_before


# -- bounds ---------------------------------------------------------------------------------------


@given(conditions, states(), st.integers(0, 3))
def test_every_state_beyond_a_bound_satisfies_the_condition(
    a: TerminationCondition, state: AgentState, excess: int
) -> None:
    bounds = a.bounds()
    if bounds.iterations is not None:
        assert a.check(evolve(state, iteration=bounds.iterations + excess))
    if bounds.tokens is not None:
        over = int(bounds.tokens.limit) + 1 + excess
        assert a.check(evolve(state, prompt_tokens_used=over, completion_tokens_used=0))
    if bounds.seconds is not None:
        assert a.check(evolve(state, active_seconds=bounds.seconds.limit + excess))
    if bounds.dollars is not None:
        assert a.check(evolve(state, cost=bounds.dollars.limit + excess))
    if bounds.iterations is not None or bounds.seconds is not None:
        assert bounds.guarantees_halt


@given(conditions)
def test_a_condition_that_guarantees_a_halt_holds_in_the_end(a: TerminationCondition) -> None:
    late = AgentState(iteration=10_000, active_seconds=1e9, started_at=START, updated_at=START + timedelta(days=10_000))
    busy = late.with_message(Message(Role.USER, "go on"))
    if a.bounds().guarantees_halt:
        assert a.check(late)
        assert a.check(busy)


@given(conditions, conditions)
def test_a_branch_more_never_loosens_an_or_and_never_tightens_an_and(
    a: TerminationCondition, b: TerminationCondition
) -> None:
    either, alone, both = (a | b).bounds(), a.bounds(), (a & b).bounds()
    inf = float("inf")
    for less, more in ((either, alone), (alone, both)):
        assert (inf if less.iterations is None else less.iterations) <= (
            inf if more.iterations is None else more.iterations
        )
        for tight, loose in zip(
            (less.tokens, less.seconds, less.dollars), (more.tokens, more.seconds, more.dollars), strict=True
        ):
            assert (inf if tight is None else tight.limit) <= (inf if loose is None else loose.limit)
        assert less.guarantees_halt >= more.guarantees_halt


# -- explanation ----------------------------------------------------------------------------------


def nodes(tree: Explanation) -> list[Explanation]:
    return [tree, *(node for child in tree.children for node in nodes(child))]


@given(conditions, states())
def test_explain_agrees_with_check_at_every_node(a: TerminationCondition, state: AgentState) -> None:
    tree = a.explain(state)
    assert tree.satisfied is a.check(state)
    shown = [node for node in nodes(tree) if not node.children]
    asked = list(a.leaves())
    assert [node.name for node in shown] == [leaf.name for leaf in asked]
    for node, leaf in zip(shown, asked, strict=True):
        assert node.satisfied is leaf.check(state)
        assert node.text
        if node.distance is not None:
            assert (node.distance == 0) is node.satisfied
            assert node.distance >= 0


@given(conditions, states())
def test_an_explanation_is_json_and_one_line_a_node(a: TerminationCondition, state: AgentState) -> None:
    tree = a.explain(state)
    assert json.loads(json.dumps(tree.to_json(), allow_nan=False)) == tree.to_json()
    assert len(str(tree).splitlines()) == len(nodes(tree))


# -- forms ----------------------------------------------------------------------------------------


@given(conditions)
def test_json_repr_and_pickle_give_an_equal_condition_back(a: TerminationCondition) -> None:
    text = json.dumps(a.to_json(), allow_nan=False)
    copies = (
        condition_from_json(json.loads(text)),
        eval(repr(a), dict(NAMES)),
        pickle.loads(pickle.dumps(a)),
    )
    for copy in copies:
        assert copy == a
        assert hash(copy) == hash(a)
        assert repr(copy) == repr(a)
        assert copy.bounds() == a.bounds()


@given(conditions, conditions, states())
def test_equal_conditions_come_to_equal_results(
    a: TerminationCondition, b: TerminationCondition, state: AgentState
) -> None:
    assert (a == b) is (a.to_json() == b.to_json())
    if a == b:
        assert a.evaluate(state) == b.evaluate(state)


@given(conditions)
def test_trees_are_flat_where_that_changes_nothing(a: TerminationCondition) -> None:
    for kind in (AndCondition, OrCondition):
        joined = kind(a, a)
        assert not any(isinstance(branch, kind) for branch in joined.conditions)
        assert list(joined.leaves()) == 2 * list(a.leaves())
