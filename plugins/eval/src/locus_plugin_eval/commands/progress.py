"""What a person reads while an evaluation runs: a line now and then, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import define, field

from locus_plugin_eval.trials import Trial

__all__ = ["Progress"]

#: Seconds between two lines.
_EVERY = 5.0


@define
class Progress:
    """Counts trials as they end, and says so.

    Args:
        say: prints a line.
        name: of the agent, in front of each.
    """

    say: Callable[[str], object]
    name: str
    done: int = 0
    passed: int = 0
    cost: float = 0.0
    _told: float = field(factory=time.monotonic, init=False)

    def add(self, trial: Trial, total: int) -> None:
        """A trial has ended."""
        self.done += 1
        self.passed += trial.status == "passed"
        self.cost += (trial.cost or 0.0) + (trial.judge_cost or 0.0)
        now = time.monotonic()
        if self.done == total or now - self._told >= _EVERY:
            self._told = now
            cost = f", ${self.cost:.4f}" if self.cost else ""
            self.say(f"{self.name}: {self.done} of {total} trials, {self.passed} passed{cost}")
