"""`AnswerUnusable`: an answer of the planner or of the executor that cannot be used, with all that is wrong with it."""

from __future__ import annotations

from locus.core.errors import LocusError

__all__ = ["AnswerUnusable"]

#: How many faults are reported; a model that made more of them repairs the first ones and meets the rest then.
_MOST = 20


class AnswerUnusable(LocusError):
    """A model's answer is not a valid plan, or not a valid argument.

    Args:
        problems: what is wrong, each on a line of its own, in words for the model that is asked again.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems[:_MOST]
        super().__init__("; ".join(self.problems))
