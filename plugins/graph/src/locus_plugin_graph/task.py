"""One task of a super-step: from what is on record, through the node, to an outcome on record.

What a task comes to is kept in it, for the super-step to read when all have ended: a result, a failure, a question that
waits for a person, or nothing, where the run was ending before the task began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from locus.core import EMPTY, FrozenDict
from locus.core.errors import BudgetExceeded, OutcomeUnknown
from locus.core.events import Ending
from locus.core.journal import Intent, Outcome
from locus.core.labels import CLEAN, Label
from locus.plugin import Interrupt, Option
from locus.tools import ask_person, call_in_thread, enter_step, find_failure, find_question, time_limit
from locus_plugin_graph.context import NodeContext, TaskEntry
from locus_plugin_graph.errors import NodeError
from locus_plugin_graph.events import NodeCompleteEvent, NodeStartEvent
from locus_plugin_graph.plan import Command, Plan, Task
from locus_plugin_graph.values import copy_value, copy_values, freeze_update

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.loop import SegmentContext

__all__ = ["TaskRun"]

#: What a person may answer for a task whose outcome is unknown.
AGAIN, SKIP, STOP = Option("run again", allow=True), Option("skip"), Option("stop")


class TaskRun:
    """A task of the frontier.

    Args:
        plan: the graph.
        run: the segment.
        state: that the super-step began with.
        values: gives the entries of the metadata that the node gets copies of.
        entry: its step.
        due: its node, and of a `Send` its values.
    """

    __slots__ = (
        "_due",
        "_plan",
        "_run",
        "_state",
        "_values",
        "asks",
        "entry",
        "failure",
        "is_alone",
        "label",
        "limit",
        "result",
        "stopped",
    )

    def __init__(
        self,
        plan: Plan,
        run: SegmentContext,
        state: AgentState,
        values: Callable[[], Mapping[str, Any]],
        entry: TaskEntry,
        due: Task,
    ) -> None:
        self._plan, self._run, self._state, self._values, self._due = plan, run, state, values, due
        self.entry = entry
        #: Whether no other task is due in this super-step.
        self.is_alone = False
        #: What is recorded of a task that came to its end: ``update``, ``goto``, ``label``, ``failed``.
        self.result: FrozenDict[str, Any] | None = None
        self.failure: BaseException | None = None
        self.asks = False
        #: The end of the run, where a limit of it has ended the task.
        self.limit: Ending | None = None
        #: What a person has said with `STOP`.
        self.stopped: NodeError | None = None
        self.label: Label = CLEAN

    async def go(self) -> None:
        """Bring the task from what is on record to its outcome."""
        run, entry = self._run, self.entry
        host, node, tries = run.host, entry.node, entry.node.retries
        while True:
            found = host.find_step(entry.at, entry.digest)
            if type(found) is Outcome:
                if found.error is None:
                    self._take(found.value)
                    if run.has_listener(NodeCompleteEvent):
                        await self._tell(found.value, replayed=True)
                    return
                if self._has_met_limit(found.value):
                    return
                entry.attempt += 1
                continue
            if host.questions:
                entry.question = "unknown"
                given = entry.find_answer(run)
                if given is not None and await self._obey(str(given[1])):
                    return
                if given is not None:
                    continue
                if host.is_waiting(entry.at, (entry.digest,)):
                    self.asks = True
                    return
            if type(found) is Intent and found.policy == "once":
                await self._ask_unknown(f"node {node.name!r} was under way when the process ended")
                return
            if run.cancelled is not None or (run.deadline is not None and run.is_out_of_time()):
                return
            if not await self._try(found, is_last=not tries):
                return
            tries -= 1

    # -- the node ---------------------------------------------------------------------------------

    async def _try(self, found: Any, *, is_last: bool) -> bool:
        """Enter the node once; whether it is to be tried again."""
        run, entry = self._run, self.entry
        host, node = run.host, entry.node
        if run.has_listener(NodeStartEvent):
            await run.emit(NodeStartEvent(node=node.name, task=entry.task, attempt=entry.attempt))
        entry.answered, entry.raised_by_context = 0, None
        try:
            value = await enter_step(entry, run, self._enter, node.effect, found)  # type: ignore[arg-type]
        except BaseException as e:  # whatever a node raises is its task's error
            asking = find_question(e)
            failed = find_failure(e)
            if asking is entry.raised_by_context and asking is not None:
                entry.question = entry.raised_as
                await self._ask(asking)
                return False
            if asking is not None:
                failed = NodeError(node.name, "raised an Interrupt itself; ctx.interrupt(...) returns the answer")
            if failed is None:
                raise
            if host.stop_error is not None:
                raise host.stop_error from None
            if isinstance(failed, OutcomeUnknown):
                await self._ask_unknown(f"node {node.name!r}: it is not known what came of {failed}")
                return False
            return await self._fail(failed, is_last=is_last)
        await self._settle(value)
        return False

    async def _enter(self) -> FrozenDict[str, Any]:
        """The node's body: what it returned, as it is recorded."""
        entry, run, plan, given = self.entry, self._run, self._plan, self._due[1]
        node = entry.node
        values = copy_values(self._values(), node.reads) if given is None else copy_value(given)
        arguments: tuple[Any, ...] = (values,)
        if node.takes_context:
            key = f"{run.run_id}/{entry.step_id.iteration}/{entry.task}:{node.name}"
            arguments = (values, NodeContext(entry, run, key))
        limit = node.timeout if run.deadline is None else time_limit(node.timeout, run.deadline)
        if limit is None and node.is_async:
            made = await node.run(*arguments)
        elif limit is None:
            made = await self._call(arguments)
        else:
            with anyio.move_on_after(limit) as scope:
                made = await self._call(arguments)
            if scope.cancelled_caught:
                raise TimeoutError(f"it did not finish within {limit:.3g} s")
        goto: Any = ()
        if isinstance(made, Command):
            to = made.goto if isinstance(made.goto, list | tuple) else (made.goto,)
            goto, made = tuple(plan.task(node.name, each, node.goto, "it goes to") for each in to), made.update
        update = freeze_update(node.name, made, plan.keys)
        if node.writes is not None and not update.keys() <= set(node.writes):
            extra = ", ".join(map(repr, sorted(update.keys() - set(node.writes))))
            raise NodeError(node.name, f"wrote {extra}, and declares writes={node.writes!r}")
        if not goto and entry.read is CLEAN:
            return FrozenDict(update=update)
        record: dict[str, Any] = {"update": update}
        if goto:
            record["goto"] = goto
        if entry.read is not CLEAN:
            record["label"] = (entry.read.reads, tuple(sorted(entry.read.sources)))
        return FrozenDict(record)

    async def _call(self, arguments: tuple[Any, ...]) -> Any:
        node = self.entry.node
        if node.is_async:
            return await node.run(*arguments)
        return await call_in_thread(partial(node.run, *arguments), self.entry)

    # -- outcomes ---------------------------------------------------------------------------------

    async def _settle(self, value: FrozenDict[str, Any]) -> None:
        entry, run = self.entry, self._run
        is_heard = run.has_listener(NodeCompleteEvent)
        waits = self.is_alone and not is_heard  # for the transition, which follows at once
        await run.host.settle(entry.at, value, entry.digest, when="next" if waits else "now")
        self._take(value)
        if is_heard:
            await self._tell(value)

    def _take(self, value: FrozenDict[str, Any]) -> None:
        self.result = value
        if "label" in value:
            reads, sources = value["label"]
            self.label = Label(reads, frozenset(sources))

    async def _tell(self, value: FrozenDict[str, Any], *, replayed: bool = False) -> None:
        entry, update = self.entry, value["update"]
        event = NodeCompleteEvent(node=entry.node.name, task=entry.task, update=update, replayed=replayed)
        await self._run.emit(event)

    async def _fail(self, error: BaseException, *, is_last: bool) -> bool:
        """Record that an attempt failed; whether there is another one now."""
        entry, run, text = self.entry, self._run, f"{type(error).__name__}: {error}"
        self.limit = self._find_limit(error)
        value: Any = entry.failed
        if self.limit is not None:
            value = FrozenDict(failed=value, limit=self.limit.reason)
        await run.host.settle(entry.at, value, entry.digest, text)
        if run.has_listener(NodeCompleteEvent):
            await run.emit(NodeCompleteEvent(node=entry.node.name, task=entry.task, error=text))
        if self.limit is not None:
            return False
        entry.attempt += 1
        if not (is_last or run.cancelled is not None):
            return True
        fallback = self._plan.fallbacks.get(entry.node.name)
        if fallback is None:
            self.failure = error
        else:
            await self._settle(FrozenDict(update=EMPTY, goto=((fallback, None),), failed=text))
        return False

    # -- limits of the run ------------------------------------------------------------------------

    def _find_limit(self, error: BaseException) -> Ending | None:
        """The end of the run for a limit that its node has met; None where the node failed by itself."""
        run, account = self._run, self.entry.account
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # a task group in the node
        if isinstance(error, TimeoutError):
            if run.deadline is not None:
                run.is_out_of_time()
        elif not isinstance(error, BudgetExceeded):
            return None
        elif not self._is_over_budget() and account is not None:
            rest = account.find_rest()
            if 0 in (rest.tokens, rest.dollars):
                run.stop = Ending.from_others(error.reason)  # the task's own part of the limit
        return self._take_stop()

    def _has_met_limit(self, record: Any) -> bool:
        """Whether an attempt on record was ended by a limit of the run: then it is not entered again."""
        limit = record.get("limit", "") if isinstance(record, Mapping) else ""
        self.entry.failed = tuple((record["failed"] if limit else record) or ())  # of all attempts so far
        if limit:
            self._is_over_budget()
            self.limit = self._take_stop() or Ending.from_others(limit)
        return bool(limit)

    def _is_over_budget(self) -> bool:
        return self._run.over_budget(self._run.with_charges(self._state, take=False))

    def _take_stop(self) -> Ending | None:
        """The end that was found; the super-step ends the run with it when all tasks have had their turn."""
        found, self._run.stop = self._run.stop, None
        return found

    # -- questions --------------------------------------------------------------------------------

    async def _ask(self, asking: Interrupt) -> None:
        self.asks = True
        await ask_person(self.entry, asking, self._run, tool_name=self.entry.node.name)

    async def _ask_unknown(self, what: str) -> None:
        self.entry.question = "unknown"
        await self._ask(Interrupt(f"{what}. Has it happened?", (AGAIN, SKIP, STOP)))

    async def _obey(self, answer: str) -> bool:
        """Do what a person says of a task whose outcome is unknown; whether the task is over."""
        entry = self.entry
        if answer == AGAIN.label:
            entry.attempt += 1
            return False
        if answer == STOP.label:
            self.stopped = NodeError(entry.node.name, "a person stopped the run, as its outcome is unknown")
        else:
            await self._settle(FrozenDict(update=EMPTY))
        return True
