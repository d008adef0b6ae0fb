"""`Loop`: everything that stays the same over all runs of an agent, wired once.

Resolved here: the hooks compiled to tuples, the tools with their specs, the condition with its ceiling. A run
then looks nothing up by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from locus.core.ceiling import Ceiling
from locus.core.frozen import EMPTY, FrozenDict
from locus.core.state import AgentState
from locus.hooks.dispatch import first_answer, onion
from locus.hooks.table import NO_HOOKS, HookTable
from locus.journal.clock import Clock, SystemClock
from locus.loop import nodes
from locus.loop.router import Node, Router
from locus.models.protocol import Model, ModelSettings

if TYPE_CHECKING:
    from locus.core.termination import TerminationCondition
    from locus.loop.context import ActiveRun
    from locus.memory.conversation import ConversationManager
    from locus.models.output import OutputSchema
    from locus.plugins.report import PluginReport
    from locus.tools.registry import ToolRegistry

__all__ = ["Loop"]

NodeFunction = Callable[[AgentState, "ActiveRun"], Awaitable[AgentState]]


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
        limits: what was or-ed to the agent's condition for one run.
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
    limits: tuple[TerminationCondition, ...] = ()
    nodes: Mapping[Node, NodeFunction] = field(default=_KERNEL)

    ceiling: Ceiling = field(init=False)
    #: Whether a plugin may divert routes.
    diverts: bool = field(init=False)
    #: Whether a plugin decides about tool calls.
    decides: bool = field(init=False)
    #: Whether a plugin wraps tool bodies.
    wraps_tools: bool = field(init=False)

    @ceiling.default
    def _ceiling(self) -> Ceiling:
        return Ceiling.of(self.router.condition)

    @diverts.default
    def _diverts(self) -> bool:
        return bool(self.hooks.impls("locus_decide_route"))

    @decides.default
    def _decides(self) -> bool:
        return bool(self.hooks.impls("locus_decide_tool_call"))

    @wraps_tools.default
    def _wraps_tools(self) -> bool:
        return bool(self.hooks.impls("locus_wrap_tool_call"))

    @classmethod
    def wire(cls, **parts: Any) -> Loop:
        """A loop whose nodes are the plugins' where they bring some, wrapped where they wrap them."""
        loop = cls(**parts)
        return evolve(loop, nodes={node: _wrapped(_node(node, loop.hooks), node, loop.hooks) for node in Node})

    def unwrapped(self) -> Mapping[Node, NodeFunction]:
        """The nodes without what plugins wrap around them."""
        return {node: _node(node, self.hooks) for node in Node}


def _node(node: Node, hooks: HookTable) -> NodeFunction:
    kernel = _KERNEL[node]
    impls = hooks.impls(f"locus_{node.value}")
    if not impls or node is Node.REFLECT:
        return kernel

    async def chosen(state: AgentState, run: ActiveRun) -> AgentState:
        answer = await first_answer(impls, state, run, kernel, run.health)
        return run.charged(answer)

    return chosen


def _wrapped(chosen: NodeFunction, node: Node, hooks: HookTable) -> NodeFunction:
    wraps = hooks.impls("locus_wrap_node")
    if not wraps:
        return chosen

    async def wrapped(state: AgentState, run: ActiveRun) -> AgentState:
        spent, done = state.usage, state

        async def core(inner: AgentState) -> AgentState:
            nonlocal spent
            made = await chosen(inner, run)
            spent += made.usage - inner.usage
            return made

        around = onion(wraps, core, before=(node,), after=(run,), returns=AgentState, health=run.health)
        try:
            done = await around(state)
        finally:
            # A wrapper may throw away what the node made of the state, but not what that has spent.
            run.charge(spent - done.usage)
        return run.charged(done)

    return wrapped
