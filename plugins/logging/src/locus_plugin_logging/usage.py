"""What a run has spent by an event: tokens in and out, and dollars where they are known."""

from __future__ import annotations

from attrs import frozen

from locus import IterationEvent, ModelCompleteEvent, RunStartEvent, TerminateEvent, Usage
from locus.plugin import Event, RunContext

__all__ = ["RunUsage", "Tally"]


@frozen
class RunUsage:
    """What the run has spent so far, this event included.

    Args:
        input_tokens, output_tokens: of all model calls.
        cost: dollars, or None where no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def with_call(self, usage: Usage) -> RunUsage:
        """Together with one call's."""
        cost = self.cost if usage.cost is None else (self.cost or 0.0) + usage.cost
        return RunUsage(self.input_tokens + usage.prompt_tokens, self.output_tokens + usage.completion_tokens, cost)


class Tally:
    """The sum while a segment runs.

    Calls count when their event comes, before the state has them; the state has more, such as what failed attempts and
    children have spent, and is caught up with at each iteration and at the end.
    """

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = RunUsage()

    def hear(self, event: Event, run: RunContext) -> RunUsage:
        """The sum with this event."""
        if isinstance(event, ModelCompleteEvent):
            self.spent = self.spent.with_call(event.usage)
        elif isinstance(event, RunStartEvent | IterationEvent):
            self.spent = self._all(run.state.usage)
        elif isinstance(event, TerminateEvent):
            self.spent = self._all(event.usage)
        return self.spent

    def _all(self, usage: Usage) -> RunUsage:
        # A state tells no dollars from none known; that a call was free was known from the call.
        cost = self.spent.cost if usage.cost is None else usage.cost
        return RunUsage(usage.prompt_tokens, usage.completion_tokens, cost)
