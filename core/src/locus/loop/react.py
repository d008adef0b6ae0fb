"""`Loop`: everything that stays the same over all runs of an agent, wired once.

Resolved here: the hooks compiled to tuples, the tools with their specs, the condition with its ceiling. A run
then looks nothing up by name.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve, field, frozen

from locus.core.frozen import EMPTY, FrozenDict
from locus.core.state import AgentState
from locus.core.termination import Bounds, CostLimit, Deadline, OrCondition, TimeLimit
from locus.hooks.dispatch import first_answer, onion
from locus.hooks.report import PluginReport
from locus.hooks.table import NO_HOOKS, HookTable
from locus.loop import nodes
from locus.loop.router import Node, Router
from locus.memory.conversation import ConversationManager
from locus.models.output import OutputSchema
from locus.models.protocol import Model, ModelSettings
from locus.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from locus.loop.active import ActiveRun

__all__ = ["Clock", "Loop", "SystemClock"]

NodeFunction = Callable[[AgentState, "ActiveRun"], Awaitable[AgentState]]


class Clock(Protocol):
    """The only source of time; a test brings its own."""

    def now(self) -> datetime:
        """The time, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """The time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()


_KERNEL: Mapping[Node, NodeFunction] = {
    Node.THINK: nodes.think,
    Node.EXECUTE: nodes.execute,
    Node.REFLECT: nodes.reflect,
    Node.TERMINATE: nodes.terminate,
}


@frozen(kw_only=True)
class Loop:
    """One agent's wiring.

    Args:
        model: what Think calls.
        tools: what Execute can run.
        router: the condition and the reflect policies.
        hooks: the compiled hooks.
        plugins: what became of each plugin that was asked for.
        manager: maps the conversation to what the model sees, or None.
        settings: how the model is to answer.
        output: the schema of the final answer, or None.
        max_revisions: how often reviewers may send one run's answers back.
        sequential: run the calls of a turn one after another.
        resolve: from a model's name to the model, for plugins that bring their own.
        clock: the only source of time.
    """

    model: Model
    tools: ToolRegistry
    router: Router
    hooks: HookTable = NO_HOOKS
    plugins: tuple[PluginReport, ...] = ()
    versions: FrozenDict[str, str] = EMPTY
    manager: ConversationManager | None = None
    settings: ModelSettings = ModelSettings()
    output: OutputSchema[Any] | None = None
    max_revisions: int = 2
    sequential: bool = False
    resolve: Callable[[str], Model] | None = None
    clock: Clock = SystemClock()
    nodes: Mapping[Node, NodeFunction] = field(default=_KERNEL)

    #: What the condition guarantees, and whether its answer can change by time alone.
    bounds: Bounds = field(init=False)
    timed: bool = field(init=False)

    #: Whether a plugin may divert routes.
    diverts: bool = field(init=False)

    #: When the condition stops the run for certain, by the wall clock.
    stops_at: datetime | None = field(init=False)

    @stops_at.default
    def _stops_at(self) -> datetime | None:
        condition = self.router.condition
        branches = condition.conditions if isinstance(condition, OrCondition) else (condition,)
        return min((b.at for b in branches if isinstance(b, Deadline)), default=None)

    #: What calls without a known price are charged, dollars per million tokens, or None.
    unknown_price: float | None = field(init=False)

    @unknown_price.default
    def _unknown_price(self) -> float | None:
        limits = (leaf for leaf in self.router.condition.leaves() if isinstance(leaf, CostLimit))
        return max((c.unknown_price for c in limits if c.unknown_price is not None), default=None)

    @diverts.default
    def _diverts(self) -> bool:
        return bool(self.hooks.impls("locus_decide_route"))

    @bounds.default
    def _bounds(self) -> Bounds:
        return self.router.condition.bounds()

    @timed.default
    def _timed(self) -> bool:
        return any(isinstance(leaf, TimeLimit | Deadline) for leaf in self.router.condition.leaves())

    @classmethod
    def wire(cls, **parts: Any) -> Loop:
        """A loop whose nodes are the plugins' where they bring some, wrapped where they wrap them."""
        loop = cls(**parts)
        return evolve(loop, nodes={node: _node(node, loop.hooks) for node in Node})


def _node(node: Node, hooks: HookTable) -> NodeFunction:
    kernel = _KERNEL[node]
    impls = hooks.impls(f"locus_{node.value}")
    wraps = hooks.impls("locus_wrap_node")
    chosen = kernel
    if impls and node is not Node.REFLECT:

        async def chosen(state: AgentState, run: ActiveRun) -> AgentState:
            answer = await first_answer(impls, state, run)
            return run.charged(answer)

    if not wraps:
        return chosen

    async def wrapped(state: AgentState, run: ActiveRun) -> AgentState:
        async def core(inner: AgentState) -> AgentState:
            return await chosen(inner, run)

        around = onion(wraps, core, before=(node,), after=(run,), returns=AgentState)
        done: AgentState = await around(state)
        return run.charged(done)

    return wrapped
