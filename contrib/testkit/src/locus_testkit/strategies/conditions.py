"""Termination trees, leaves and all, of which each can be written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from locus.core.state import AgentState
from locus.core.termination import (
    ConfidenceMet,
    CostLimit,
    CustomCondition,
    Deadline,
    MaxIterations,
    NoProgress,
    NoToolCalls,
    TerminationCondition,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
    ToolCallLimit,
)
from locus_testkit.strategies.data import TOOLS, build_once, moments

__all__ = ["conditions", "has_arguments", "has_errors", "is_confident", "leaves"]


def has_errors(state: AgentState) -> bool:
    """A predicate that can be imported by name."""
    return bool(state.errors)


def is_confident(state: AgentState) -> bool:
    """A predicate that can be imported by name."""
    return state.confidence > 0.5


def has_arguments(arguments: Mapping[str, Any]) -> bool:
    """A predicate on a call's arguments that can be imported by name."""
    return bool(arguments)


@build_once
def leaves() -> SearchStrategy[TerminationCondition]:
    """Every leaf of the kernel, with and without its argument."""
    limits = st.floats(0.001, 1000) | st.integers(1, 100)
    return st.one_of(
        st.builds(MaxIterations, st.integers(1, 20)),
        st.builds(TokenLimit, st.none() | st.integers(1, 200)),
        st.builds(ToolCallLimit, st.integers(0, 20)),
        st.builds(TimeLimit, limits),
        st.builds(CostLimit, limits),
        st.builds(Deadline, moments()),
        st.builds(NoToolCalls),
        st.builds(
            ToolCalled,
            st.sampled_from(TOOLS),
            st.none() | st.just(has_arguments),
            require_success=st.booleans(),
        ),
        st.builds(ConfidenceMet, st.none() | st.floats(0, 1)),
        st.builds(TextMention, st.sampled_from(["done", "a|e", r"\d+", ""])),
        st.builds(NoProgress, st.none() | st.integers(2, 4)),
        st.builds(CustomCondition, st.sampled_from([has_errors, is_confident])),
    )


@build_once
def conditions(*, max_leaves: int = 5) -> SearchStrategy[TerminationCondition]:
    """Trees of ``&``, ``|`` and ``~`` over `leaves`.

    Args:
        max_leaves: about how many leaves at most.
    """
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            st.builds(lambda a: ~a, inner),
        ),
        max_leaves=max_leaves,
    )
