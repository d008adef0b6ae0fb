"""What the guardrails did in a run: numbers, never what was found."""

from __future__ import annotations

from collections import Counter

from attrs import frozen

from locus_plugin_guardrails.rule import Action, Place

__all__ = ["Did", "GuardrailsReport", "RuleCount", "Tally"]

#: One deed: the rule, where, and what was done.
Did = tuple[str, Place, Action]


@frozen
class RuleCount:
    """How often a rule acted in one place."""

    rule: str
    where: Place
    action: Action
    times: int


@frozen
class GuardrailsReport:
    """``result.reports["guardrails"]``: what happened in this segment of the run.

    Args:
        counts: in the order in which they first happened.
    """

    counts: tuple[RuleCount, ...] = ()

    def times(self, rule: str) -> int:
        """How often a rule acted, wherever."""
        return sum(count.times for count in self.counts if count.rule == rule)

    def __str__(self) -> str:
        if not self.counts:
            return "nothing found"
        return ", ".join(f"{c.rule} in {c.where}: {c.action} {c.times}x" for c in self.counts)


class Tally:
    """The counts of one segment while it runs."""

    __slots__ = ("_counted",)

    def __init__(self) -> None:
        self._counted: Counter[Did] = Counter()

    def add(self, did: Counter[Did]) -> None:
        """Count what was done."""
        self._counted.update(did)

    @property
    def report(self) -> GuardrailsReport:
        """The counts so far."""
        return GuardrailsReport(tuple(RuleCount(*did, times) for did, times in self._counted.items()))
