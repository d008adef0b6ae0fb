"""`Outcome`: what checking a claim gave, and what the state and the result keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from locus.core.state import AgentState
from locus_kit.metadata import read_run_data, with_run_data

__all__ = ["NAME", "Outcome", "Record", "VerifierReport"]

NAME = "verifier"

#: Characters of a reason that are kept in the state.
_LONGEST = 2_000


@frozen(kw_only=True)
class Outcome:
    """What a check gave.

    Args:
        verified: whether the claim holds.
        reason: what is missing, for the agent's model; ``""`` when it holds.
        output: the end of a command's output, for the agent's model, as data.
        failure: why the check itself could not be made, or None; not for the agent's model.
    """

    verified: bool
    reason: str = ""
    output: str = ""
    failure: str | None = None

    @property
    def verdict(self) -> str:
        """``"verified"``, ``"unverified"``, or ``"unchecked"``."""
        return "verified" if self.verified else "unverified" if self.failure is None else "unchecked"

    def to_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {"verified": self.verified, "reason": self.reason, "output": self.output, "failure": self.failure}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Outcome:
        """From JSON data."""
        return cls(
            verified=data["verified"] is True,
            reason=str(data["reason"]),
            output=str(data["output"]),
            failure=None if data["failure"] is None else str(data["failure"]),
        )


@frozen(kw_only=True)
class Record:
    """What a run's state says of its claims.

    Args:
        refused: how many were refused.
        verdict, reason: of the newest that was accepted.
    """

    refused: int = 0
    verdict: str = ""
    reason: str = ""

    @classmethod
    def of(cls, state: AgentState) -> Record:
        """What a state keeps."""
        found = read_run_data(state, NAME)
        refused = found.get("refused")
        return cls(
            refused=refused if isinstance(refused, int) else 0,
            verdict=str(found.get("verdict", "")),
            reason=str(found.get("reason", "")),
        )

    def into(self, state: AgentState) -> AgentState:
        """The state with it."""
        data = {"refused": self.refused, "verdict": self.verdict, "reason": self.reason}
        return with_run_data(state, NAME, data)

    def after(self, outcome: Outcome) -> Record:
        """With a claim that was accepted."""
        return evolve(self, verdict=outcome.verdict, reason=outcome.reason[:_LONGEST])


@frozen(kw_only=True)
class VerifierReport:
    """``result.reports["verifier"]``.

    Args:
        verdict: of the claim that ended the run: ``"verified"``; ``"unverified"`` (refused as often as it may be);
            ``"unchecked"`` (the check itself failed); ``""`` (no claim was made: a limit or an error ended the run).
        reason: what is missing, or ``""``.
        refused: how many claims of the run were refused.
        checks: how many claims were checked in this call of ``run`` or ``resume``.
        failures: how many of those checks failed themselves.
        errors: why, the last five.
    """

    verdict: str = ""
    reason: str = ""
    refused: int = 0
    checks: int = 0
    failures: int = 0
    errors: tuple[str, ...] = ()
