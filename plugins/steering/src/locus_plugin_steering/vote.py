"""`Vote`: the judge's answer, read strictly.

Nothing is looked for between the words of an answer: a judge that quotes a hostile text would quote its vote as well.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from locus.models import OutputSpec
from locus_kit.parsing import NotOneObject, parse_json_object

__all__ = ["DECISIONS", "SPEC", "BadVote", "Decision", "Vote", "read_vote"]

Decision = Literal["proceed", "reject", "cancel", "ask"]
DECISIONS: tuple[Decision, ...] = ("proceed", "reject", "cancel", "ask")

#: Characters of a reason; a longer one is cut.
LONGEST_REASON = 500
#: Characters of an answer; a longer one is invalid.
LONGEST = 10_000

SPEC = OutputSpec(
    name="vote",
    schema={
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": list(DECISIONS)},
            "reason": {"type": "string"},
        },
        "required": ["decision", "reason"],
        "additionalProperties": False,
    },
)


class BadVote(ValueError):
    """An invalid answer of the judge. Its text says why, and never quotes the answer."""


@frozen
class Vote:
    """What the judge says about one call.

    Args:
        decision: ``"proceed"``, ``"reject"``, ``"cancel"`` or ``"ask"``.
        reason: why; not empty unless it may proceed.
    """

    decision: Decision
    reason: str = ""


def read_vote(text: str) -> Vote:
    """The vote that a text is: one JSON object and nothing else, with one fence around it at most.

    Raises:
        BadVote: it is not a vote.
    """
    try:
        form = parse_json_object(text, longest=LONGEST)
    except NotOneObject as e:
        raise BadVote(str(e)) from None
    if set(form) - {"decision", "reason"} or "decision" not in form:
        raise BadVote("the answer is not an object of decision and reason")
    decision = next((known for known in DECISIONS if known == form["decision"]), None)
    reason = form.get("reason", "")
    if decision is None:
        raise BadVote(f"the decision must be one of {', '.join(DECISIONS)}")
    if not isinstance(reason, str):
        raise BadVote("the reason must be text")
    reason = " ".join(reason.split())[:LONGEST_REASON]
    if not reason and decision != "proceed":
        raise BadVote(f"{decision} needs a reason")
    return Vote(decision, reason)
