"""What follows a score: the summary is accepted, written again, or researched again; and the node `replan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from locus_deepagent.research.keys import (
    KEY_EXECUTE_PROMPT,
    KEY_GROUNDING_SCORE,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_REPLAN_COUNT,
    KEY_UNGROUNDED_CLAIMS,
    read_count,
    read_number,
    read_text,
    read_texts,
)
from locus_kit.validators import integer, number
from locus_plugin_graph import END
from locus_plugin_signals.sender import EV_RESEARCH_REPLAN, emit

if TYPE_CHECKING:
    from locus_plugin_graph import NodeContext

__all__ = ["RouteAfterGrounding", "make_replan_node", "route_after_grounding"]

#: How many claims a replan names.
_SHOWN: Final = 6


@frozen
class RouteAfterGrounding:
    """Says what follows `grounding_eval`; a pure function of the values, see `route_after_grounding`."""

    threshold: float = field(default=0.65, validator=number())
    max_replans: int = field(default=2, validator=integer(0))
    max_regenerations: int = field(default=1, validator=integer(0))

    def __call__(self, values: Mapping[str, Any]) -> str:
        """``END``, ``"regenerate"`` or ``"replan"``."""
        regenerated = read_count(values, KEY_REGENERATION_COUNT) >= self.max_regenerations
        replanned = read_count(values, KEY_REPLAN_COUNT) >= self.max_replans
        if read_number(values, KEY_GROUNDING_SCORE) >= self.threshold or (regenerated and replanned):
            return END
        return "replan" if regenerated else "regenerate"


def route_after_grounding(
    threshold: float = 0.65, max_replans: int = 2, max_regenerations: int = 1
) -> RouteAfterGrounding:
    """A router for the edges after `grounding_eval`: rewrites come before new research, as they are cheaper.

    Args:
        threshold: the score from which the summary is accepted.
        max_replans: how often a run researches again, 0 or more.
        max_regenerations: how often a run rewrites its summary, 0 or more.

    Raises:
        ValueError: a number is out of range.
    """
    return RouteAfterGrounding(threshold, max_replans, max_regenerations)


def make_replan_node() -> Any:
    """A node that writes what is to be researched next.

    Reads `KEY_PROMPT`, `KEY_UNGROUNDED_CLAIMS` (6 of them) and `KEY_REPLAN_COUNT`. Writes `KEY_EXECUTE_PROMPT`, and the
    count plus 1.
    """
    return _replan


async def _replan(values: Mapping[str, Any], ctx: NodeContext | None = None) -> dict[str, Any]:
    prompt, doubtful = read_text(values, KEY_PROMPT), read_texts(values, KEY_UNGROUNDED_CLAIMS)
    if doubtful:
        listed = "\n".join(f"- {claim}" for claim in doubtful[:_SHOWN])
        asked = (
            f"An investigation of '{prompt}' left these claims unverified:\n{listed}\n\nGather specific evidence that "
            "verifies or refutes each of them, and nothing else."
        )
    else:
        asked = f"Investigate '{prompt}' again, and look for stronger and more specific evidence."
    count = read_count(values, KEY_REPLAN_COUNT) + 1
    await emit(EV_RESEARCH_REPLAN, replan=count, ungrounded_count=len(doubtful), prompt_preview=asked)
    return {KEY_EXECUTE_PROMPT: asked, KEY_REPLAN_COUNT: count}
