"""`what_if`: where another rule would have stopped a run, from its journal alone.

Conditions and routers are pure functions of the state, and every state is on record: so the answer is exact as far as
the record goes, and says so where it ends. No model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, frozen

from locus import Agent
from locus.core.errors import ConditionError, ConfigError, JournalError
from locus.core.journal import END, FORK, START, Entry
from locus.core.messages import Usage
from locus.core.termination import NoToolCalls, Satisfied, TerminationCondition, effective
from locus.journal import read_entries
from locus.loop.router import Node, Route, Router
from locus_plugin_timetravel.histories import Source, store_of
from locus_plugin_timetravel.pages import Pages, newest_transition, newest_usage
from locus_plugin_timetravel.text import describe_usage
from locus_plugin_timetravel.traces import NodeTrace, TraceReader, node_traces

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal import JournalStore

__all__ = ["WhatIf", "what_if"]

WhatIfVerdict = Literal["earlier", "same", "beyond", "diverged"]
RouterLike = Callable[[Node, "AgentState"], Route]

#: Reasons that no condition gave: the run would have ended there under any other as well.
_OTHER_ENDS = ("ModelError", "NodeError", "Diverted")


@frozen(kw_only=True)
class WhatIf:
    """What another rule would have made of a run.

    Args:
        thread_id: the thread.
        run_id: the run, by the id that it ended with.
        verdict: ``"earlier"``: it would have stopped before it did; ``"same"``: where it did; ``"beyond"``: not where
            it did, nor anywhere on record; ``"diverged"``: another node would have followed, so the record ends there
            from there.
        n: the transition with which it would have stopped or parted, as in `History`; None for ``"beyond"``.
        node: the node of that transition.
        iteration: 0-based index of its iteration.
        before_call: it would have stopped right before that Think asked the model.
        reason: why it would have stopped, such as ``"MaxIterations"``; for ``"diverged"`` the node that would have
            followed, for ``"beyond"`` the one that the run would have gone on with.
        satisfied: the leaves that are satisfied there.
        usage: what the run had spent by then.
        saved: what it spent after that.
    """

    thread_id: str
    run_id: str
    verdict: WhatIfVerdict
    n: int | None = None
    node: str = ""
    iteration: int = 0
    before_call: bool = False
    reason: str = ""
    satisfied: tuple[str, ...] = ()
    usage: Usage = Usage()
    saved: Usage = Usage()

    @property
    def cost(self) -> float | None:
        """Dollars that the run had spent by then, or None when no price was known."""
        return self.usage.cost

    def __str__(self) -> str:
        if self.verdict == "beyond":
            return f"it would have gone on with {self.reason}, beyond the record"
        where = f"transition {self.n} ({self.node}, iteration {self.iteration + 1})"
        if self.verdict == "diverged":
            return f"after {where} it would have gone to {self.reason}, where the record does not follow"
        early = f"{'before the model call of' if self.before_call else 'after'} {where}: {self.reason}"
        if self.verdict == "same":
            return f"it would have stopped where it did, {early}"
        return f"it would have stopped {early}; {describe_usage(self.saved) or 'nothing'} saved"


async def what_if(
    source: Source,
    thread_id: str,
    *,
    termination: TerminationCondition | None = None,
    router: RouterLike | None = None,
    run_id: str | None = None,
) -> WhatIf:
    """Where a run would have stopped under another rule.

    Args:
        source: the agent, or the store where the thread is kept. With an agent its reflect policies are asked too, and
            with neither ``termination`` nor ``router`` its own rule.
        thread_id: the thread.
        termination: the condition, in place of the one that the run had. What every agent stops at stays, as in
            ``Agent(termination=...)``: its terminal tools, and an answer without tool calls.
        router: in place of both condition and reflect policies: a `Router`, or any pure function
            ``(node, state) -> Route``.
        run_id: which of the thread's runs; None = the last one.

    Raises:
        ConfigError: both a condition and a router are given, or for a store neither of them, or something else; or the
            agent has no checkpointer.
        NothingToResume: the thread does not exist.
        JournalError: the thread has no such run, or the store keeps no history.
    """
    store, runtime = store_of(source), source.runtime if isinstance(source, Agent) else None
    if termination is None and router is None and runtime is not None:
        router = runtime.router
    if (termination is None) == (router is None):
        raise ConfigError("say under which rule: either termination=<a condition> or router=<a router>")
    if termination is not None and not isinstance(termination, TerminationCondition):
        raise ConfigError(f"termination is {termination!r}; use a condition, such as MaxIterations(3)")
    rule = partial(_rule, termination=termination, router=router, runtime=runtime)
    _, last = await newest_transition(store, thread_id)
    if run_id in (None, last.run_id):
        found = await _newest(store, thread_id, last.run_id, rule)
        if found is not None:
            return found
    run = _run(thread_id, await read_entries(store, thread_id), run_id)
    asked = _Asked(thread_id, run[-1].run_id, *rule(run[0]))
    found = next(filter(None, map(asked.read, run)), None) or asked.end()
    return _with_saved(found, run[-1].after.usage)


def _with_saved(found: WhatIf, spent: Usage) -> WhatIf:
    """The answer with what the run spent after that."""
    if found.verdict == "beyond":
        return evolve(found, usage=spent)
    return evolve(found, saved=spent - found.usage)


def _rule(
    start: NodeTrace, *, termination: TerminationCondition | None, router: RouterLike | None, runtime: Any
) -> tuple[RouterLike, bool]:
    """The rule for a run, and whether it is about stopping only: elsewhere the record's routes are followed."""
    if router is not None:
        return router, False
    leaves = [NoToolCalls()] if runtime is None else runtime.router.condition.leaves()
    condition, _ = effective(
        termination,
        terminal_tools=start.after.terminal_tools,
        implicit_no_tool_calls=any(isinstance(leaf, NoToolCalls) for leaf in leaves),
    )
    return Router(condition, None if runtime is None else runtime.router.reflect), True


async def _newest(
    store: JournalStore, thread_id: str, run_id: str, rule: Callable[[NodeTrace], tuple[RouterLike, bool]]
) -> WhatIf | None:
    """The answer for the newest run, read no further than to it; None where the run has another id than it began with.

    A fork of a run has: there the whole record says which transitions are the run's.
    """
    pages, reader = Pages(store, thread_id), TraceReader()
    asked: _Asked | None = None
    while page := await pages.next():
        for trace in (trace for entry in page for trace in reader.read(entry) if trace.transition is not None):
            if asked is None and trace.node == START and trace.run_id == run_id:
                asked = _Asked(thread_id, run_id, *rule(trace))
            found = asked.read(trace) if asked is not None else None
            if found is not None:
                return _with_saved(found, await newest_usage(store, thread_id))
    return None if asked is None else _with_saved(asked.end(), reader.state.usage)


def _run(thread_id: str, entries: Sequence[Entry], run_id: str | None) -> list[NodeTrace]:
    """The traces of one run, forks of it included."""
    runs: list[list[NodeTrace]] = []
    for trace in node_traces(entries):
        if trace.transition is None:
            continue
        if trace.node == START:
            runs.append([])
        runs[-1].append(trace)
    for run in reversed(runs):
        if run_id is None or any(p.transition is not None and p.transition.run_id == run_id for p in run):
            return run
    raise JournalError(f"thread {thread_id!r} has no run {run_id!r}" if runs else f"no run began on {thread_id!r}")


class _Asked:
    """One run, and the rule that it is asked about.

    Args:
        thread_id: the thread.
        run_id: the run.
        router: the rule.
        follow: the rule is about stopping only: where it does not, the record's routes are followed.
    """

    def __init__(self, thread_id: str, run_id: str, router: RouterLike, follow: bool) -> None:  # noqa: FBT001
        self._thread_id, self._run_id, self._router, self._follow = thread_id, run_id, router, follow
        #: The transition in which the run turned to its end, or None as long as it has not.
        self._end: int | None = None
        self._last: NodeTrace | None = None

    def read(self, trace: NodeTrace) -> WhatIf | None:
        """The answer, when it shows in this trace; the run's traces are read in order."""
        self._last = trace
        if self._end is None and _next(trace) == Node.TERMINATE:
            self._end = trace.n
        return None if trace.node in (START, FORK, Node.TERMINATE) else self._at(trace)

    def end(self) -> WhatIf:
        """The answer when no trace of the run showed it."""
        last = self._last
        assert last is not None
        return self._beyond(_next(last)) if _next(last) != END else self._ended_as_recorded(last)

    def _at(self, trace: NodeTrace) -> WhatIf | None:
        made = trace.transition
        assert made is not None
        if trace.node == Node.THINK:
            early = self._before_call(trace)
            if early is not None:
                return early
        if trace.failure is not None and trace.cancelled is None:
            return self._explain_failure(trace)
        if self._ended_otherwise(trace):
            return self._ended_as_recorded(trace)
        try:
            route = self._route(trace, made.next_node)
        except ConditionError:
            return self._build_stop(trace, trace.after, "ConditionError", ())
        if route is None or route.next == made.next_node != Node.TERMINATE:
            return None
        if route.next == Node.TERMINATE:
            found = route.satisfied or Satisfied(route.why, ())
            return self._build_stop(trace, trace.after, found.reason, found.leaves)
        if made.next_node == Node.TERMINATE:
            return self._beyond(route.next)
        if made.instead_of == route.next:
            return None
        return self._build("diverged", route.next, trace, trace.after)

    def _before_call(self, trace: NodeTrace) -> WhatIf | None:
        """Whether it would have stopped where Think checks the budgets."""
        condition = getattr(self._router, "condition", None)
        if condition is None:
            return None
        silent = not trace.attempts and trace.failure is None and not trace.answered
        if silent and trace.cancelled is not None:
            return None  # the cancellation came first
        # Where the model was not asked, what had passed by then, time and tokens, is what the transition has.
        seen = trace.after if silent else trace.before
        try:
            found = condition.evaluate(seen)
        except ConditionError:
            found = Satisfied("ConditionError", ())
        if found is not None:
            stop = self._build_stop(trace, seen, found.reason, found.leaves)
            return evolve(stop, verdict=stop.verdict if silent else "earlier", before_call=True)
        # It was not asked, for a reason that this rule does not share: its answer is unknown.
        stopped = _next(trace) == Node.TERMINATE and not self._ended_otherwise(trace)
        return self._beyond(Node.THINK) if stopped and silent else None

    def _explain_failure(self, trace: NodeTrace) -> WhatIf:
        """The model had failed, and where the rule explains the end better, it does."""
        condition, state = getattr(self._router, "condition", None), trace.after
        if trace.gave_up:  # no limit of time had passed when it came
            before = trace.before
            state = state.at(updated_at=before.updated_at, active_seconds=before.active_seconds)
        try:
            found = condition.evaluate(state) if condition is not None else None
        except ConditionError:
            found = Satisfied("ConditionError", ())
        found = found or Satisfied("ModelError", ())
        return self._build_stop(trace, trace.after, found.reason, found.leaves)

    @staticmethod
    def _ended_otherwise(trace: NodeTrace) -> bool:
        """Whether the run ended here for a reason that no condition gave."""
        made = trace.transition
        if made is None or made.next_node != Node.TERMINATE:
            return False
        return trace.cancelled is not None or made.why in _OTHER_ENDS

    def _route(self, trace: NodeTrace, followed: str) -> Route | None:
        """Where the rule goes from here; None = as the record does."""
        # The router sees the state before its transition stamps time and iteration on it.
        before = trace.before
        state = trace.after
        if not trace.out_of_time:
            state = state.at(updated_at=before.updated_at, active_seconds=before.active_seconds)
        state = state.with_iteration(before.iteration)
        node = Node(trace.node)
        if not self._follow or followed == Node.TERMINATE:
            return self._router(node, state)
        condition: TerminationCondition = self._router.condition  # type: ignore[attr-defined]
        found = condition.evaluate(state)
        if found is None and followed == Node.THINK:
            found = condition.evaluate(state.with_iteration(before.iteration + 1))
        return None if found is None else Route(Node.TERMINATE, found.reason, found)

    # -- answers ----------------------------------------------------------------------------------

    def _build_stop(self, trace: NodeTrace, state: AgentState, reason: str, satisfied: tuple[str, ...]) -> WhatIf:
        verdict: WhatIfVerdict = "same" if trace.n == self._end else "earlier"
        return evolve(self._build(verdict, reason, trace, state), satisfied=satisfied)

    def _ended_as_recorded(self, trace: NodeTrace) -> WhatIf:
        made = trace.transition
        assert made is not None
        return self._build_stop(trace, trace.after, made.why, made.satisfied)

    def _build(self, verdict: WhatIfVerdict, reason: str, trace: NodeTrace, state: AgentState) -> WhatIf:
        return WhatIf(
            thread_id=self._thread_id,
            run_id=self._run_id,
            verdict=verdict,
            n=trace.n,
            node=str(trace.node),
            iteration=trace.before.iteration,
            reason=str(reason),
            usage=state.usage,
        )

    def _beyond(self, node: str) -> WhatIf:
        """The rule goes on where the record ends: the last of it."""
        last = self._last
        assert last is not None
        found = self._build("beyond", node, last, last.after)
        return evolve(found, n=None, node="", iteration=last.after.iteration)


def _next(trace: NodeTrace) -> str:
    return trace.transition.next_node if trace.transition is not None else ""
