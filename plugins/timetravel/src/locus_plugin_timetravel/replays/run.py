"""The live part of a replay: `ReplayRun` stands where the run stands, between the same nodes, router and driver.

No model is called and no tool's body entered; observers, deciders and the wrappers of calls are not asked, because what
they decided is in the record. Time is the record's.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from locus.core.fingerprint import bare
from locus.core.journal import BLANK, CALL, REVIEW, StepId
from locus.hooks.health import STRIKES
from locus.hooks.table import HookTable, Impl
from locus.loop.context import SegmentContext
from locus.loop.router import Node

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from locus.core.events import Event
    from locus.core.messages import ToolCall, Usage
    from locus.core.state import AgentState
    from locus.loop.runtime import AgentRuntime, NodeFunction
    from locus.models import Model, ModelRequest, ModelResponse
    from locus_plugin_timetravel.replays.host import ReplayHost
    from locus_plugin_timetravel.traces import NodeTrace

__all__ = ["RecordedClock", "ReplayRun", "replay_runtime"]

_ACCEPT = None


class RecordedClock:
    """Shows the time of a committed state."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state: AgentState = BLANK

    def show(self, state: AgentState) -> None:
        """Stand still at the time at which a state was committed."""
        self._state = state

    def now(self) -> datetime:
        """The time of the commit."""
        return self._state.updated_at

    def monotonic(self) -> float:
        """The seconds that the run had been at work by then."""
        return self._state.active_seconds


class ReplayRun(SegmentContext):
    """The live part of a replay: nobody hears of it, and whom it would ask is answered for by the record."""

    __slots__ = ("_next", "_verdicts")

    host: ReplayHost

    def __init__(self, runtime: AgentRuntime, thread_id: str, **what: Any) -> None:
        super().__init__(runtime, thread_id, **what)
        #: How often each reviewer has let an answer pass.
        self._verdicts: Counter[str] = Counter()
        # The step that a plugin's model call is about to be.
        self._next = StepId(0, CALL)

    def take_up(self, trace: NodeTrace) -> None:
        """A node begins, as if nothing had been tried before."""
        self.stop, self._cancel, self._pending = None, None, None
        self.state = trace.before
        self.elapsed()
        if trace.cancelled is not None and trace.idle:
            self.cancel(trace.cancelled)

    def show_to(self, sink: Any) -> None:
        """Show nothing to anybody."""
        self.sink = None
        self.has_listener = _to_nobody

    async def emit(self, event: Event) -> None:
        """Tell nobody."""

    @property
    def decides(self) -> bool:
        """The record has decided about every call that was made."""
        return True

    async def decide(self, call: ToolCall) -> Any:
        """A call without a record."""
        raise self.host.unheard_of(call)

    def take_retry(self) -> bool:
        """Whether a hook asked for another try then."""
        return self.host.retried()

    def over_budget(self, state: AgentState) -> bool:
        """As in a run, at the time and with the cancellation of the record."""
        self.host.before_call(self)
        return super().over_budget(state)

    async def call_model(self, request: ModelRequest, *, model: Any = None, purpose: str) -> ModelResponse:
        """A plugin's recorded call."""
        self._next = self._call_id(request, purpose)
        if self.host.find_unchecked(self._next) is None:
            self.host.spend()
        return await super().call_model(request, model=model, purpose=purpose)

    def barred(self, more: Usage | None = None) -> str | None:
        """As in a run; but a call that is on record was made, so there was room for it."""
        return super().barred(more) if self.halted or self.host.find_unchecked(self._next) is None else None

    def model_for(self, model: Any) -> Model:
        """The model asked then: one that is named needs no provider now."""
        if not isinstance(model, str):
            return super().model_for(model)
        found = self.host.find_unchecked(self._next)
        named: Any = _Named(model if found is None else bare(found.digest).rpartition(":")[0])
        return named  # type: ignore[no-any-return]  # it is never called

    async def hook_step(self, name: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        """A reviewer's recorded verdict."""
        step_id = StepId(self.state.iteration, REVIEW, name=name)
        if self.host.find_unchecked(step_id) is None and self._verdicts[name] >= STRIKES:
            return _ACCEPT  # it failed so often that it was not asked any more
        verdict = await super().hook_step(name, fn)
        self._verdicts[name] += verdict == _ACCEPT
        return verdict


@frozen
class _Named:
    """A model by its name."""

    name: str


def _to_nobody(event: type[Event]) -> bool:
    return False


def replay_runtime(runtime: AgentRuntime, nodes: Mapping[Node, NodeFunction], host: ReplayHost) -> AgentRuntime:
    """An agent's runtime as a replay runs it: on the record's time, with the routes that hooks decided on.

    Args:
        runtime: the agent's wiring.
        nodes: its nodes, with or without what plugins wrap around them.
        host: the record.
    """
    hooks = runtime.hooks
    if runtime.diverts:
        name = "locus_decide_route"
        hooks = HookTable({**hooks.hooks, name: (Impl(call=host.diverted, plugin="", hook=name),)})
    closing = {node: _closing(function, host) for node, function in nodes.items()}
    return evolve(runtime, hooks=hooks, nodes=closing, clock=host.clock)


def _closing(function: NodeFunction, host: ReplayHost) -> NodeFunction:
    async def node(state: AgentState, run: Any) -> AgentState:
        try:
            new = await function(state, run)
        except Exception:
            host.spend()
            raise
        host.closed(run)
        return new

    return node
