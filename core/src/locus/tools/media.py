"""A result that is more than text, given again: its blocks stand in the conversation and are kept nowhere else.

A conversation only grows in a run, so the place of a result never changes; the system prompt, which a later turn may
add or drop, is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from locus.core.messages import SYSTEM

if TYPE_CHECKING:
    from locus.core.executions import ToolExecution
    from locus.core.messages import Block
    from locus.core.state import AgentState
    from locus.tools.outcome import CallOutcome

__all__ = ["place_media", "repeat_content"]


def place_media(outcome: CallOutcome, state: AgentState, ordinal: int) -> CallOutcome:
    """An outcome whose execution knows where its blocks are going to stand.

    Args:
        outcome: what came of a call.
        state: the state whose last turn asks for it.
        ordinal: the number of the call in the turn, from 0: results are added in call order.
    """
    at = len(state.messages) - _prompts(state) + ordinal
    return evolve(outcome, execution=evolve(outcome.execution, media_at=at))


def repeat_content(earlier: ToolExecution, state: AgentState) -> str | tuple[Block, ...]:
    """What the model got for an earlier execution."""
    at = None if earlier.media_at is None else earlier.media_at + _prompts(state)
    if at is not None and at < len(state.messages):
        for result in state.messages[at].tool_results:
            # Whoever has rewritten the conversation since has taken the blocks out of it.
            if result.name == earlier.tool_name:
                return result.content
    return f"Error: {earlier.error}" if earlier.error is not None else earlier.result or ""


def _prompts(state: AgentState) -> int:
    """How many system prompts the conversation begins with: one or none."""
    return 1 if state.messages and state.messages[0].role is SYSTEM else 0
