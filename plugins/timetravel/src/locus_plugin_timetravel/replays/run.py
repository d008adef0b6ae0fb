"""`ReplayRun`: what nodes and plugins see of a run while it is replayed.

No model is called and no tool's body entered; observers, deciders and the wrappers of calls are not asked, because what
they decided is in the record.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from locus.core.fingerprint import bare
from locus.core.journal import CALL, REVIEW, StepId
from locus.hooks import STRIKES
from locus.loop import SegmentContext
from locus_plugin_timetravel.text import call_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from locus.core.messages import ToolCall, Usage
    from locus.core.state import AgentState
    from locus.loop import AgentRuntime, NodeFunction
    from locus.loop.router import Node
    from locus.models import Model, ModelRequest, ModelResponse
    from locus_plugin_timetravel.replays.host import ReplayHost
    from locus_plugin_timetravel.traces import NodeTrace

__all__ = ["ReplayRun", "replay_runtime"]

#: Hooks that have decided already, or that only watch.
_ON_RECORD = ("locus_on_", "locus_decide_", "locus_filter_", "locus_wrap_model_", "locus_wrap_tool_")


@define(eq=False, repr=False)
class ReplayRun(SegmentContext):
    """A segment of a run that answers from the record."""

    host: ReplayHost = field(default=None, init=False)
    #: The plugins that wrap Think's model calls; a replay has their answers and does not ask them.
    wrappers: tuple[str, ...] = field(default=(), init=False)
    #: How often each reviewer has let an answer pass; one that failed is on record as one that did.
    _verdicts: Counter[str] = field(factory=Counter, init=False)
    #: The step that a plugin's model call is about to be.
    _next: StepId = field(default=StepId(0, CALL), init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # The record has decided about every call that was made.
        self.has_deciders = True

    def enter_trace(self, trace: NodeTrace) -> None:
        """A node begins, as if nothing had been tried before."""
        self.stop, self._cancel, self.uncharged = None, None, None
        # Nothing is spent, and no child is started: what was reserved for children decides nothing here.
        self.account, self.is_limited = None, False
        self.state = trace.before
        self.take_elapsed()
        if trace.cancelled is not None and trace.idle:
            self.cancel(trace.cancelled)

    async def decide(self, call: ToolCall, *, is_answered: bool = False) -> Any:
        """A call without a record."""
        raise self.host.missing_call(call_text(call.name, call.arguments))

    def over_budget(self, state: AgentState) -> bool:
        """As in a run, at the time and with the cancellation of the record."""
        self.host.before_call()
        if not super().over_budget(state):
            self.stop = self.host.used_up
        return self.stop is not None or self.halted

    async def call_model(
        self, request: ModelRequest, *, model: Any = None, purpose: str, parent: StepId | None = None
    ) -> ModelResponse:
        """A plugin's recorded call."""
        self._next = self.call_id(request, purpose, parent)
        if self.host.find_unchecked(self._next) is None:
            self.host.spend()
        return await super().call_model(request, model=model, purpose=purpose, parent=parent)

    def find_exceeded(self, more: Usage | None = None) -> str | None:
        """As in a run; but a call that is on record was made, so there was room for it."""
        if not self.halted and self.host.find_unchecked(self._next) is not None:
            return None
        found = super().find_exceeded(more)
        if found is None and self.host.trace.used_up is not None:
            self.stop = self.host.trace.used_up
            found = self.stop_reason
        return found

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
            return None
        verdict = await super().hook_step(name, fn)
        self._verdicts[name] += verdict is None
        return verdict


@frozen
class _Named:
    """A model by its name."""

    name: str


def replay_runtime(runtime: AgentRuntime, nodes: Mapping[Node, NodeFunction], host: ReplayHost) -> AgentRuntime:
    """An agent's runtime as a replay runs it: on the record's time, with the hooks that make states.

    Args:
        runtime: the agent's wiring.
        nodes: its nodes, with or without what plugins wrap around them.
        host: the record.
    """
    kept = {name: impls for name, impls in runtime.hooks.hooks.items() if not name.startswith(_ON_RECORD)}
    closing = {node: _closing(function, host) for node, function in nodes.items()}
    return evolve(runtime, hooks=evolve(runtime.hooks, hooks=kept), nodes=closing, clock=host.clock)


def _closing(function: NodeFunction, host: ReplayHost) -> NodeFunction:
    async def node(state: AgentState, run: Any) -> AgentState:
        try:
            new = await function(state, run)
        except Exception:
            host.spend()
            raise
        host.leave()
        return new

    return node
