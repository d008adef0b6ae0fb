"""`AgentRuntime`: everything that is the same for all runs of an agent, put together once.

Invariants:

- It is immutable, but for the set of runs that are active now, which is there for ``cancel``. One runtime serves any
  number of concurrent runs, in any number of threads.
- Names are resolved when it is built (`locus.loop.builder`): hooks are tuples, tools have their schemas, the condition
  has its budget, and the nodes are chosen and wrapped. A run looks nothing up by name.
- A run with limits of its own, or a child that must stay within what its parent has left, gets a copy with
  further limits in its router. It shares everything else, the set of active runs included.

Deciding these things run by run was tried first: with several hooks it cost more than the nodes themselves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from locus.core.errors import BudgetExceeded, ConfigError, InputError, NothingToResume
from locus.core.frozen import EMPTY, FrozenDict, frozen
from locus.core.journal import Submitted
from locus.core.lazy import Lazy
from locus.core.state import AgentState
from locus.hooks.dispatch import first_answer, onion
from locus.hooks.table import HookTable
from locus.journal.host import JournalHost
from locus.journal.memory import MemoryStore
from locus.journal.queue import QueueStore
from locus.journal.submission import choose_queue, submit_turn
from locus.loop import nodes as kernel
from locus.loop.budget import condition_given, with_limits
from locus.loop.context import SegmentContext
from locus.loop.input import Prompt, new_turn, thread_name
from locus.loop.parts import AgentParts
from locus.loop.router import Node
from locus.loop.segment import run_segment
from locus.loop.thread import Segment, ended_before
from locus.result import AgentResult, make_result
from locus.run import Channel, Run, wait_for_ending
from locus.tools.account import Account, Budget, check_budget, limits_of

if TYPE_CHECKING:
    from locus.core.labels import Label
    from locus.core.messages import Message
    from locus.journal.store import JournalStore
    from locus.models import output
    from locus.options import RunOptions, SubmitOptions
else:
    output = Lazy("locus.models.output")

NodeFunction = Callable[[AgentState, SegmentContext], Awaitable[AgentState]]


_KERNEL: Mapping[Node, NodeFunction] = {
    Node.THINK: kernel.think,
    Node.EXECUTE: kernel.execute,
    Node.REFLECT: kernel.reflect,
    Node.TERMINATE: kernel.terminate,
}

_NO_STORE = "this agent has no checkpointer, so nothing is kept under a thread id; "


@frozen(kw_only=True, eq=False)
class AgentRuntime(AgentParts[SegmentContext]):
    """An agent, put together; its arguments are the `AgentParts`."""

    nodes: Mapping[Node, NodeFunction] = field(default=_KERNEL)
    think: Callable[[AgentState, SegmentContext, Message | None], Awaitable[AgentState]] = field(default=kernel.think)

    @classmethod
    def wire(cls, *, hooks: HookTable, **parts: Any) -> AgentRuntime:
        """A runtime whose nodes are the plugins' where they bring some, wrapped where they wrap them."""
        return cls(hooks=hooks, nodes=_nodes(hooks), **parts)

    def with_guards_of(self, above: AgentParts[SegmentContext], without: Collection[str]) -> AgentRuntime:
        """The runtime of a child: the guards and deciders of the run above hold in it, but for those that are named."""
        hooks = self.hooks.with_guards_of(above.hooks, without)
        if hooks is self.hooks:
            return self
        names = {impl.plugin for impls in hooks.hooks.values() for impl in impls} - {each.name for each in self.plugins}
        inherited = tuple(each for each in above.plugins if each.name in names)
        return evolve(self, hooks=hooks, nodes=_nodes(hooks), plugins=(*self.plugins, *inherited))

    def without_wrappers(self) -> Mapping[Node, NodeFunction]:
        """The nodes without what plugins wrap around them."""
        return {node: _node(node, self.hooks) for node in Node}

    # -- running ----------------------------------------------------------------------------------

    def run(self, prompt: Prompt, options: RunOptions) -> Run[Any]:
        """A run on a prompt.

        Raises:
            InputError: the prompt or the thread's name cannot be used.
            ConfigError: the output schema, the condition or the request id cannot be used.
        """
        if options.request_id:
            self.required_store()
        thread_id = thread_name(options.thread_id, self.effects.new_id)
        segment = new_turn(prompt, metadata=options.metadata or EMPTY, request_id=options.request_id or "")
        return self._run(thread_id, segment, options, None)

    def resume(self, thread: str | AgentResult[Any], answer: Any, options: RunOptions) -> Run[Any]:
        """A run that goes on with an open one.

        Raises:
            ConfigError: nothing is kept under a thread id.
        """
        store, thread_id = (thread.store, thread.thread_id) if isinstance(thread, AgentResult) else (None, thread)
        if store is None and self.store is None:
            raise ConfigError(f"{_NO_STORE}resume with the AgentResult, or build the agent with checkpointer=")
        segment = Segment(answer=answer, max_attempts=options.max_attempts, yield_after=options.yield_after)
        return self._run(str(thread_id), segment, options, store)

    async def submit(self, prompt: Prompt, options: SubmitOptions) -> str:
        """Hand a turn in for a worker to run, see `Agent.submit`."""
        store = self.required_store()
        if not isinstance(store, QueueStore):
            raise ConfigError(f"{type(store).__name__} hands no threads to workers; use a checkpointer that does")
        given, agent = new_turn(prompt), self.blank.agent_id or ""
        if given.prompt is None or given.before:
            raise InputError("a turn that is submitted is one message; give a transcript or a state to agent.run")
        thread_id = thread_name(options.thread_id, self.effects.new_id)
        turn = Submitted(
            run_id=self.effects.new_id(),
            prompt=given.prompt,
            metadata=FrozenDict(options.metadata or {}),
            agent=agent,
            version=self.version,
            queue=choose_queue(agent, self.version, options.queue, pin=options.pin),
            request_id=options.request_id or "",
        )
        due, limit = options.not_before, options.max_depth
        await submit_turn(store, thread_id, turn, priority=options.priority, not_before=due, max_depth=limit)
        return thread_id

    def _run(self, thread_id: str, segment: Segment, options: RunOptions, store: JournalStore | None) -> Run[Any]:
        limit, schema, settings = options.termination, options.output_schema, options.model_settings
        active = SegmentContext(
            self if limit is None else with_limits(self, condition_given(limit)),
            thread_id,
            deps=options.deps,
            settings=self.settings if settings is None else settings.over(self.settings),
            output=None if schema is None else output.output_schema(schema),
        )
        return Run(partial(self._main, active, segment, store), active.cancel_now, thread_id)

    async def _main(
        self, active: SegmentContext, segment: Segment, store: JournalStore | None, sink: Channel | None
    ) -> AgentResult[Any]:
        kept = store if store is not None else self.store
        if kept is None:
            kept = MemoryStore(history=False)
        if sink is not None:
            active.show_to(sink)
        await wait_for_ending(active.thread_id)
        self.active.add(active)
        try:
            ended = await run_segment(active, kept, segment)
        finally:
            self.active.discard(active)
        return make_result(active, ended, kept if self.store is None else None)

    async def child(
        self,
        prompt: Prompt,
        *,
        thread_id: str,
        parent: SegmentContext,
        budget: Budget | None,
        account: Account | None,
        answers: dict[str, Any] | None,
        given: Label,
        without_guards: Collection[str] = (),
    ) -> AgentResult[Any]:
        """Run as a part of another agent's run."""
        store = self.store if self.store is not None else parent.host.store
        wanted = budget or Budget()
        granted = wanted if account is None else account.grant(wanted)
        limits = limits_of(granted, parent.runtime.budget.unknown_price)
        guarded = self.with_guards_of(parent.runtime, without_guards)
        runtime = with_limits(guarded, *limits) if limits else guarded
        if account is not None:
            account.limit(runtime.budget.bounds)
        segment = new_turn(prompt, answer=answers, one_run=True)
        while True:
            active = SegmentContext(runtime, thread_id, deps=parent.deps, parent=parent, account=account, given=given)
            before = await JournalHost.peek(store, thread_id)
            if before is None:
                check_budget(granted)
                _check_depth(parent)
            if before is not None:
                # The child's own journal remembers it: a finished child is not run again, an asking one still asks.
                active.host = before
                ended = ended_before(before, answered=answers is not None)
                if ended is not None and not before.claim.is_abandoned:
                    return make_result(active, ended)
            self.active.add(active)
            parent.caller_cancel.include(active.caller_cancel)
            try:
                return make_result(active, await run_segment(active, store, segment))
            except NothingToResume:
                # Another worker, which had not noticed that it was overtaken, has ended it since: read its journal.
                continue
            finally:
                self.active.discard(active)
                parent.caller_cancel.exclude(active.caller_cancel)

    def required_store(self) -> JournalStore:
        """Where threads are kept.

        Raises:
            ConfigError: the agent has no checkpointer.
        """
        if self.store is None:
            raise ConfigError(f"{_NO_STORE}build it with checkpointer=")
        return self.store

    def drain(self, thread_id: str | None) -> int:
        """Ask active runs to yield, see `Agent.drain`."""
        chosen = [r for r in tuple(self.active) if r.parent is None and thread_id in (None, r.thread_id)]
        for run in chosen:
            run.iterations_left = 0
        return len(chosen)

    def cancel(self, reason: str | None, run_id: str | None, thread_id: str | None) -> int:
        """Ask active runs to end; returns how many."""
        found = 0
        for run in tuple(self.active):
            if (run_id is None or run.run_id == run_id) and (thread_id is None or run.thread_id == thread_id):
                run.cancel_now(reason)
                found += 1
        return found


def _check_depth(run: SegmentContext) -> None:
    """Refuse a child below the last level that an agent allows, this run's or one above.

    Raises:
        BudgetExceeded: no level is left.
    """
    above: SegmentContext | None = run
    depth = 1
    while above is not None:
        if depth > above.runtime.call_limits.levels:
            reason = "no child run was started: this run is on the last level that max_depth, here or above it, allows"
            raise BudgetExceeded("max_depth", reason)
        above, depth = above.parent, depth + 1


def _nodes(hooks: HookTable) -> dict[Node, NodeFunction]:
    return {node: _wrap(_node(node, hooks), node, hooks) for node in Node}


def _node(node: Node, hooks: HookTable) -> NodeFunction:
    default = _KERNEL[node]
    impls = hooks.impls(f"locus_{node.value}")
    if not impls or node is Node.REFLECT:
        return default

    async def chosen(state: AgentState, run: SegmentContext) -> AgentState:
        answer = await first_answer(impls, state, run, default, run.health)
        return run.with_charges(answer)

    return chosen


def _wrap(chosen: NodeFunction, node: Node, hooks: HookTable) -> NodeFunction:
    wraps = hooks.impls("locus_wrap_node")
    if not wraps:
        return chosen

    async def wrapped(state: AgentState, run: SegmentContext) -> AgentState:
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
        return run.with_charges(done)

    return wrapped
