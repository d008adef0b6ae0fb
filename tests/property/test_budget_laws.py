"""The law of limits: no model call begins beyond a limit of any run above it, whatever the tree of runs looks like."""

from __future__ import annotations

from random import Random

import anyio
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from tests.property.budget_world import Meter, Node, agent_of, grow

from locus.core.termination import CostLimit, TokenLimit
from locus.journal import MemoryStore

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def run_tree(node: Node, backend: str, store: MemoryStore | None = None) -> Meter:
    """Run a tree to its end; gives the meter of the whole."""
    meter = Meter(node.max_tokens, node.max_dollars)
    agent = agent_of(node, meter, checkpointer=store)

    async def main() -> None:
        result = await agent.run("go", thread_id="t")
        assert result.error is None
        assert result.usage.total_tokens == meter.tokens
        for text in [r.content for m in result.state.messages for r in m.tool_results]:
            assert "AssertionError" not in str(text), text

    anyio.run(main, backend=backend)
    return meter


@both_backends
@given(random=st.randoms(use_true_random=False))
def test_no_call_begins_beyond_a_limit_above_it(backend: str, random: Random) -> None:
    """What is spent beyond a limit is spent by the calls that were under way when it was reached."""
    run_tree(grow(random), backend, MemoryStore()).check()


@given(random=st.randoms(use_true_random=False))
def test_a_tree_that_runs_one_call_at_a_time_spends_at_most_one_call_on_top(random: Random) -> None:
    meter = run_tree(_one_by_one(grow(random)), "asyncio")
    meter.check()
    assert len(meter.then or ()) <= 1


def _one_by_one(node: Node) -> Node:
    turns = tuple(
        tuple(evolve(work, together=False, children=tuple(map(_one_by_one, work.children))) for work in turn)
        for turn in node.turns
    )
    return evolve(node, turns=turns, mode="sequential")


def test_the_bounds_say_what_may_be_spent_on_top() -> None:
    bounds = (TokenLimit(300) | CostLimit(0.05)).bounds()
    assert bounds.tokens is not None
    assert bounds.dollars is not None
    assert bounds.tokens.overshoot == "the tokens of the calls under way, here and in children, when it is exceeded"
    assert bounds.dollars.overshoot == ("the price of the calls under way, here and in children, when it is reached")
