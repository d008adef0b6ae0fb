"""`replay`: an agent's code run against a thread's journal, without a model and without a tool's body.

Every node runs as it ran, through the driver of all runs, on the state that the journal has before it; what it comes to
is compared with what the journal has after it. The replay ends at the first difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from locus.core import thaw
from locus.core.errors import LocusError, ReplayDiffers, StepFailed
from locus.core.events import Ending
from locus.core.journal import FORK, START
from locus.core.messages import Role
from locus.core.termination import TerminationCondition, condition_from_json
from locus.journal import LIMITS, read_entries
from locus.loop import Suspended, advance_node, as_current, request_fingerprint, restore, with_limits
from locus.loop.router import Node
from locus.models import output_schema
from locus_plugin_timetravel.difference import Difference, same
from locus_plugin_timetravel.histories import store_of
from locus_plugin_timetravel.replays.host import EndOfRecord, RecordedClock, ReplayHost
from locus_plugin_timetravel.replays.run import ReplayRun, replay_runtime
from locus_plugin_timetravel.traces import node_traces

if TYPE_CHECKING:
    from locus import Agent
    from locus.core.messages import Message
    from locus.journal import JournalStore
    from locus.loop import AgentRuntime
    from locus.models import ModelSettings
    from locus_plugin_timetravel.traces import NodeTrace

__all__ = ["Replay", "Walk", "replay"]

#: What an agent says about itself in a state and no condition reads.
_NAMES = frozenset({"agent_id", "max_iterations"})


@frozen
class Replay:
    """What a replay found; true when the code does what the journal says.

    Args:
        thread_id: the thread.
        checked: how many transitions came out as recorded.
        difference: the first thing that did not, or None.
    """

    thread_id: str
    checked: int
    difference: Difference | None = None

    @property
    def ok(self) -> bool:
        """Whether there was no difference."""
        return self.difference is None

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        passed = f"{self.checked} transition{'' if self.checked == 1 else 's'} came out as recorded"
        return f"thread {self.thread_id}: {passed}{'' if self.difference is None else f', then {self.difference}'}"

    def raise_for_difference(self) -> Replay:
        """This replay; for those who prefer an exception to looking at `ok`.

        Raises:
            ReplayDiffers: there was a difference, which is its ``difference``.
        """
        if self.difference is not None:
            raise ReplayDiffers(self.thread_id, self.difference)
        return self


async def replay(
    agent: Agent[Any, Any],
    thread_id: str,
    *,
    deps: Any = None,
    model_settings: ModelSettings | None = None,
    output_schema: Any = None,
    termination: TerminationCondition | None = None,
) -> Replay:
    """Run an agent's code against a thread's journal; no model is called and no tool's body entered.

    Nodes, router, conversation manager and the binding of arguments run as ever; observers, deciders, reviewers
    and the wrappers of calls do not, because what they decided is in the journal.

    Args:
        agent: the agent, with the store where the thread is kept.
        thread_id: the thread; nothing is written to it.
        deps: what plugins' nodes get as ``run.deps``.
        model_settings: what its runs were called with.
        output_schema: what its runs were called with.
        termination: what its runs were called with, where that has no JSON form and so is not in the journal.

    Raises:
        ConfigError, NothingToResume, JournalError: as for `history`. A difference is not an exception.
    """
    store = store_of(agent)
    entries = await read_entries(store, thread_id)
    walk, checked = Walk(agent.runtime, store, thread_id, deps, model_settings, output_schema, termination), 0
    for trace in node_traces(entries):
        found = await walk.check(trace)
        if found is not None:
            return Replay(thread_id, checked, found)
        checked += trace.transition is not None
    return Replay(thread_id, checked)


class Walk:
    """A replay on its way along the node_traces of a thread."""

    def __init__(
        self,
        runtime: AgentRuntime,
        store: JournalStore,
        thread_id: str,
        deps: Any,
        settings: ModelSettings | None,
        schema: Any,
        termination: TerminationCondition | None = None,
        make_run: type[ReplayRun] = ReplayRun,
    ) -> None:
        self._make_run = make_run
        self._runtime, self._thread_id, self._deps, self._termination = runtime, thread_id, deps, termination
        self._settings = runtime.settings if settings is None else settings.over(runtime.settings)
        self._output = None if schema is None else output_schema(schema)
        self._host = ReplayHost(store, thread_id, RecordedClock())
        self._run: ReplayRun
        # The runtime of the segment with its nodes as plugins wrap them, or None without wrappers.
        self._wrapped: AgentRuntime | None = None

    async def check(self, trace: NodeTrace) -> Difference | None:
        """What one trace differs in, or None."""
        if trace.transition is not None and trace.node in (START, FORK):
            self._host.pass_by(trace)
            if trace.node == FORK:
                return None
            return self._compare_start(trace) or self._segment(trace)
        if trace.resumed:
            unreadable = self._segment(trace)
            if unreadable is not None:
                return unreadable
        run = self._run
        run.runtime, wrapped = self._bare, self._wrapped
        found = await self._node(trace, run)
        if found is None or wrapped is None:
            return found
        # A wrapper of nodes that only watches is not wanted here. One that changes states is a part of the code.
        run.runtime = wrapped
        return await self._node(trace, run)

    async def run_alone(self, last: NodeTrace, trace: NodeTrace) -> ReplayRun | None:
        """The run of one node, whatever came before the last transition, and whatever it differs in.

        Args:
            last: what the transition before it has come to.
            trace: the node.

        Returns:
            None where the segment cannot begin: its tools, or its limits, are not readable.
        """
        self._host.pass_by(last)
        if self._segment(trace) is not None:
            return None
        run = self._run
        wrappers = tuple(each.plugin for each in self._runtime.hooks.impls("locus_wrap_model_call"))
        run.wrappers = tuple(dict.fromkeys(wrappers))
        for runtime in (self._bare, self._wrapped):
            if runtime is not None:
                run.runtime = runtime
                await self._node(trace, run)
        return run

    async def _node(self, trace: NodeTrace, run: ReplayRun) -> Difference | None:
        self._host.enter_node(trace, run)
        last = trace.last
        if trace.node == Node.TERMINATE and last is not None:
            error = None if last.error is None else StepFailed(last.error)
            run.stop = Ending(last.why, last.satisfied, last.detail, error, last.iteration_finished)
        try:
            with as_current(run):
                try:
                    await advance_node(run, trace.before, Node(trace.node))
                except Suspended:
                    if trace.cancelled is None:
                        raise
                    run.cancel(trace.cancelled)  # while its questions were open
                    await advance_node(run, trace.before, Node(trace.node))
        except ReplayDiffers as e:
            found: Difference = e.difference
            return found
        except EndOfRecord:
            return None
        except Suspended:
            if trace.transition is not None:
                return self._differs(trace, "the next node", trace.transition.next_node, "asks a person")
        return None

    # -- beginnings -------------------------------------------------------------------------------

    def _compare_start(self, trace: NodeTrace) -> Difference | None:
        """What the agent would begin a run with otherwise."""
        state, agent = trace.after, self._runtime
        for name, value in agent.template.items():
            if name not in _NAMES and not same(getattr(state, name), value):
                return self._differs(trace, f"state.{name}", getattr(state, name), value)
        first = state.messages[0] if state.messages else None
        if agent.system is not None and first != agent.system:
            return self._differs(trace, "the system prompt", _prompt(first), agent.system.text)
        return None

    def _segment(self, trace: NodeTrace) -> Difference | None:
        """Begin a segment of a run, with what it was called with."""
        runtime = self._runtime
        note = trace.find_note(LIMITS)
        if note is not None:
            try:
                limits = self._limits(note.value)
            except LocusError as e:
                return self._differs(trace, str(note.step_id), thaw(note.value), f"cannot be read: {e}")
            runtime = with_limits(runtime, *limits) if limits else runtime
        host = self._host
        self._bare = replay_runtime(runtime, runtime.without_wrappers(), host)
        wraps = runtime.hooks.impls("locus_wrap_node")
        self._wrapped = replay_runtime(runtime, runtime.nodes, host) if wraps else None
        run = self._make_run(self._bare, self._thread_id, deps=self._deps, settings=self._settings, output=self._output)
        run.host = host
        state = trace.after if trace.node == START else trace.before
        try:
            run.registry = runtime.tools.with_tools(*restore(state))
        except LocusError as e:
            return self._differs(trace, "the tools", None, f"cannot be read: {e}")
        spec = run.output.spec if run.output is not None else None
        run.request_fingerprint = request_fingerprint(state, self._runtime.system, run.registry, run.settings, spec)
        self._run = run
        return None

    def _limits(self, noted: object) -> tuple[TerminationCondition, ...]:
        forms = thaw(noted)
        if not forms and self._termination is not None:
            return (self._termination,)  # a function without a name: the record says only that there was one
        return tuple(condition_from_json(form) for form in forms)

    @staticmethod
    def _differs(trace: NodeTrace, step: str, recorded: object, actual: object) -> Difference:
        return Difference(n=trace.n, node=str(trace.node), step=step, recorded=recorded, actual=actual)


def _prompt(message: Message | None) -> str | None:
    return message.text if message is not None and message.role is Role.SYSTEM else None
