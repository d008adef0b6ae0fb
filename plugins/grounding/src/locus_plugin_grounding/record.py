"""What is kept of the passes: in the state, so that a run that is resumed says the same at its end."""

from __future__ import annotations

from typing import Any

from attrs import evolve, field, frozen

from locus.core.state import AgentState
from locus_kit.metadata import read_run_data, with_run_data
from locus_plugin_grounding.partition import Kind, TypedClaim
from locus_plugin_grounding.result import NO_CLAIMS, GroundingResult

__all__ = ["NAME", "Outcome", "Record", "one_line"]

NAME = "grounding"

#: How many claims are kept and reported, and how many characters of each.
MOST, LONGEST = 10, 300


def one_line(claim: str) -> str:
    """A claim as one line of a bounded length."""
    line = " ".join(claim.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."


@frozen
class Outcome:
    """What came of looking at one text.

    Args:
        result: what was found; None when the judge failed, or when there was nothing to compare with.
        verdict: what the report calls it.
    """

    result: GroundingResult | None
    verdict: str

    @classmethod
    def of(cls, result: GroundingResult) -> Outcome:
        """The outcome of a pass."""
        if result.reason == NO_CLAIMS:
            return cls(result, NO_CLAIMS)
        return cls(result, "ungrounded" if result.requires_replan else "grounded")

    @property
    def sends_back(self) -> bool:
        """Whether the text is not accepted."""
        return self.result is not None and self.result.requires_replan


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, tuple | list) else ()


@frozen(kw_only=True)
class Record:
    """What is known of a run's answers.

    Args:
        sent: how often one was sent back by this plugin.
        verdict: of the newest that was accepted.
        score: its score.
        ungrounded: its claims that nothing confirms.
        contradicted: claims of answers that evidence contradicts, and that were not corrected: text and kind.
    """

    sent: int = 0
    verdict: str = ""
    score: float | None = None
    ungrounded: tuple[str, ...] = field(default=(), converter=_texts)
    contradicted: tuple[TypedClaim, ...] = ()

    @classmethod
    def of(cls, state: AgentState) -> Record:
        """What a state keeps."""
        found = read_run_data(state, NAME)
        sent, score = found.get("sent"), found.get("score")
        return cls(
            sent=sent if isinstance(sent, int) else 0,
            verdict=str(found.get("verdict", "")),
            score=score if isinstance(score, float) else None,
            ungrounded=found.get("ungrounded"),
            contradicted=_open(found.get("contradicted")),
        )

    def into(self, state: AgentState) -> AgentState:
        """The state with it."""
        data = {
            "sent": self.sent,
            "verdict": self.verdict,
            "score": self.score,
            "ungrounded": self.ungrounded,
            "contradicted": tuple((claim.text, claim.kind.value) for claim in self.contradicted),
        }
        return with_run_data(state, NAME, data)

    def after(self, outcome: Outcome, *, sent: bool) -> Record:
        """With what came of another answer.

        Args:
            outcome: what came of it.
            sent: whether it was sent back, and so not accepted.
        """
        result = outcome.result
        partition = result.partition if result is not None else None
        kept = self if partition is None else evolve(self, contradicted=partition.contradicted[:MOST])
        if sent:
            return evolve(kept, sent=self.sent + 1)
        return evolve(
            kept,
            verdict=outcome.verdict,
            score=None if result is None else result.score,
            ungrounded=() if result is None else tuple(map(one_line, result.ungrounded_claims[:MOST])),
        )


def _open(value: Any) -> tuple[TypedClaim, ...]:
    found = []
    for each in value if isinstance(value, tuple | list) else ():
        if isinstance(each, tuple | list) and len(each) == 2 and each[1] in set(Kind):
            found.append(TypedClaim(str(each[0]), Kind(each[1])))
    return tuple(found)
