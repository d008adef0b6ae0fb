"""`AgentParts`: what an agent is made of, as a segment of a run sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import field

from locus.core.frozen import EMPTY, FrozenDict, frozen
from locus.core.journal import BLANK
from locus.core.state import AgentState
from locus.core.termination import RunBudget
from locus.hooks.table import NO_HOOKS, HookTable
from locus.journal.effects import Clock, Effects, InProcess, SystemClock
from locus.loop.router import Node, Router
from locus.models.protocol import Model, ModelSettings
from locus.tools.call_run import CallLimits

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.termination import TerminationCondition
    from locus.hooks.context import ConversationManager
    from locus.journal.store import JournalStore
    from locus.models.output import OutputSchema
    from locus.plugins.report import PluginReport
    from locus.tools.registry import ToolRegistry

Run = TypeVar("Run")

_HOOKS = {
    "diverts": ("locus_decide_route",),
    "has_deciders": ("locus_decide_tool_call",),
    "has_tool_wrappers": ("locus_wrap_tool_call",),
    "has_result_hooks": ("locus_shorten_result", "locus_label_result"),
}


@frozen(kw_only=True, eq=False)
class AgentParts(Generic[Run]):
    """An agent, put together.

    Args:
        model: what Think calls.
        tools: what Execute can run.
        router: the condition and the reflect policies.
        hooks: the compiled hooks.
        plugins: a report on each plugin that was asked for.
        versions: the versions of the active ones, by name.
        manager: maps the conversation to what the model sees, or None.
        settings: how the model is to answer.
        output: the schema of the final answer, or None.
        max_revisions: how often reviewers may send one run's answers back.
        retry_on: the faults of an answer that send it back to the model once.
        call_limits: how many tool calls a turn may make, at once too, and how long each may take.
        resolve: from a model's name to the model, for plugins that bring their own.
        clock: the source of time, but for what is recorded.
        effects: where effects take place, and the times and ids that are recorded.
        limits: what was or-ed to the agent's condition for one run.
        store: where journals are kept, or None.
        version: of the agent, or ``""``.
        system: the system prompt, or None.
        template: the fields of a new run's state that the agent decides.
        blank: a state with these fields and nothing else.
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
    retry_on: frozenset[str] = frozenset()
    call_limits: CallLimits = CallLimits()
    resolve: Callable[[str], Model] | None = None
    clock: Clock = SystemClock()
    effects: Effects = InProcess()
    limits: tuple[TerminationCondition, ...] = ()
    store: JournalStore | None = None
    version: str = ""
    system: Message | None = None
    template: FrozenDict[str, Any] = EMPTY
    blank: AgentState = BLANK
    #: What runs at each node, and what the kernel itself runs in Think.
    nodes: Mapping[Node, Callable[[AgentState, Run], Awaitable[AgentState]]]
    think: Callable[[AgentState, Run, Message | None], Awaitable[AgentState]]
    #: The segments that are under way. A set is changed and copied in one step, so that any thread may look.
    active: set[Run] = field(factory=set, repr=False)

    budget: RunBudget = field(init=False)
    #: Whether a plugin may divert routes, decides about tool calls, wraps tool bodies, shortens or labels results.
    diverts: bool = field(init=False)
    has_deciders: bool = field(init=False)
    has_tool_wrappers: bool = field(init=False)
    has_result_hooks: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        # Defaults that look at other fields would have attrs write the class where it is first used.
        object.__setattr__(self, "budget", RunBudget.of(self.router.condition))
        for name, hooks in _HOOKS.items():
            object.__setattr__(self, name, any(map(self.hooks.impls, hooks)))
