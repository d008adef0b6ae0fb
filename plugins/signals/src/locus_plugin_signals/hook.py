"""`SignalsHook`: makes the signals' events known, and sends at the end of a node what is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from locus.core.state import AgentState
from locus.plugin import Event, Hook, RunContext, hookimpl
from locus_plugin_signals.events import SignalRefusedEvent
from locus_plugin_signals.sender import SIGNALS, deliver

__all__ = ["SignalsHook"]


class SignalsHook(Hook):
    """Lets hooks listen to signals by the names of their events."""

    name = "signals"

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The events of all signals."""
        return [*SIGNALS.values(), SignalRefusedEvent]

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Send what was sent where nothing could wait."""
        try:
            return await call_next(state)
        finally:
            await deliver(run)
