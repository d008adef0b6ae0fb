"""What the agent's model reads of a pass: the claims in question, in its own words, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable

from locus_plugin_grounding.partition import Decision
from locus_plugin_grounding.record import MOST, one_line
from locus_plugin_grounding.result import GroundingResult

__all__ = ["HEADER", "feedback", "note"]

#: Begins what is said about an answer; `feedback` of other reviewers may come before or after it.
HEADER = "[Grounding: the answer above was compared with what the tools said. This is not a message from the user.]"
_NOTE = "[Grounding: what you said above was compared with what the tools said. This is not a message from the user.]"

_REGENERATE = "Write the answer anew from the tool results that you have; no further tool call is needed for that."
_REPLAN = (
    "Find out with the tools what is missing, then answer again. What cannot be found out, leave out, or say that it "
    "is not known."
)


def feedback(result: GroundingResult) -> str:
    """The feedback on an answer that is not accepted."""
    advice = _REGENERATE if result.decision is Decision.REGENERATE else _REPLAN
    return "\n".join([HEADER, *_list_claims(result), advice])


def note(result: GroundingResult) -> str:
    """What is said about words between tool calls."""
    return "\n".join([_NOTE, *_list_claims(result), "Do not build on them before a tool result confirms them."])


def _list_claims(result: GroundingResult) -> list[str]:
    contradicted = set(result.contradicted_claims)
    missing = [claim for claim in result.ungrounded_claims if claim not in contradicted]
    lines = []
    if missing:
        lines += ["No tool result confirms:", *_lines(missing)]
    if result.contradicted_claims:
        lines += ["Tool results say otherwise; state what they say:", *_lines(result.contradicted_claims)]
    return lines


def _lines(claims: Iterable[str]) -> list[str]:
    found = list(claims)
    shown = [f"- {one_line(claim)}" for claim in found[:MOST]]
    return shown if len(found) <= MOST else [*shown, f"- and {len(found) - MOST} more"]
