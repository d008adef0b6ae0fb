"""The loop's own breaker: it counts iterations, and cancels runs while it is open.

An iteration fails when its model call failed for good, or when every tool it entered or asked for came to an error.
"""

from __future__ import annotations

from attrs import define

from locus.core.events import IterationEvent, TerminateEvent, ToolCompleteEvent
from locus.plugin import Cancel, RunContext, StashKey
from locus_plugin_retry.breakers import Breakers
from locus_plugin_retry.settings import BreakerSettings

__all__ = ["Iterations"]


@define
class _Iteration:
    """What has become of the iteration under way."""

    era: int
    calls: int = 0
    errors: int = 0
    model_failed: bool = False


_UNDER_WAY: StashKey[_Iteration] = StashKey("retry.iteration")


class Iterations:
    """The observers of the loop's breaker.

    Args:
        settings: of the breaker; None = no breaker.
    """

    def __init__(self, settings: BreakerSettings | None) -> None:
        self._breakers = Breakers("loop", settings)

    async def on_iteration(self, event: IterationEvent, run: RunContext) -> Cancel | None:
        """Settle the iteration before, and let the next one begin."""
        await self._settle(run)
        era = self._breakers.admit("", run)
        if era is None:
            left = self._breakers.seconds_left("", run)
            return Cancel(f"the circuit breaker of the loop is open; it lets a run try again in {left:.0f} s")
        run.stash[_UNDER_WAY] = _Iteration(era)
        return None

    def on_tool_complete(self, event: ToolCompleteEvent, run: RunContext) -> None:
        """Count a call."""
        iteration = run.stash.get(_UNDER_WAY, None)
        if iteration is not None:
            iteration.calls += 1
            iteration.errors += event.error is not None

    def model_failed(self, run: RunContext) -> None:
        """The model call of the iteration failed for good."""
        iteration = run.stash.get(_UNDER_WAY, None)
        if iteration is not None:
            iteration.model_failed = True

    async def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
        """Settle the last iteration; one that was cut off says nothing."""
        if event.ending.is_interrupted or event.ending.is_cancelled:
            _current(run)
        await self._settle(run)

    async def _settle(self, run: RunContext) -> None:
        iteration = _current(run)
        if iteration is not None:
            failed = iteration.model_failed or 0 < iteration.calls == iteration.errors
            await self._breakers.record("", iteration.era, run, ok=not failed)


def _current(run: RunContext) -> _Iteration | None:
    iteration = run.stash.get(_UNDER_WAY, None)
    if iteration is not None:
        del run.stash[_UNDER_WAY]
    return iteration
