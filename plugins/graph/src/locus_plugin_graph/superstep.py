"""One super-step: all tasks that are due, each a step of the journal, their updates merged, and what follows.

What holds for each:

- A task has a step id of its place in the committed frontier: ``3/node/0:plan`` is the first task of the fourth
  super-step. Its outcome is recorded when it ends, whatever its siblings do; they finish when it fails.
- Updates are merged in the order of the frontier, never in that of completion. Routers are asked once, with the merged
  values; where they send to is committed with the merge.
- Nothing is merged while a task failed, waits for a person or was not begun. The run is left open then, and a resume
  enters only what has no result on record.
- Of what was under way when a process died, the recorded effect decides: pure and keyed tasks are entered again, the
  one of ``once`` asks a person, and so does a step inside a task whose outcome is unknown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from locus.core import EMPTY, FrozenDict, freeze
from locus.core.errors import OutcomeUnknown, StepMismatch, closest
from locus.core.journal import Intent, Outcome, StepId
from locus.core.labels import CLEAN, Label
from locus.loop import LeftOpen, Suspended, restore_children
from locus.plugin import Interrupt, Option
from locus.tools import ask_person, call_in_thread, enter_step, find_failure, find_question, run_together, time_limit
from locus_plugin_graph.context import NodeContext, TaskEntry
from locus_plugin_graph.errors import ConflictingUpdate, NodeError
from locus_plugin_graph.events import NodeCompleteEvent, NodeStartEvent
from locus_plugin_graph.plan import START, Command, Plan, Task
from locus_plugin_graph.values import (
    ADDED,
    PREFIX,
    RECORD,
    copy_value,
    copy_values,
    freeze_update,
    from_prompt,
    reduce_value,
)

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.loop import SegmentContext

__all__ = ["super_step"]

#: What a person may answer for a task whose outcome is unknown.
AGAIN, SKIP, STOP = Option("run again", allow=True), Option("skip"), Option("stop")

_NEW: FrozenDict[str, Any] = FrozenDict(next=(), waits=EMPTY, ran=(), wrote=())


async def super_step(plan: Plan, state: AgentState, run: SegmentContext) -> AgentState:
    """Run all tasks that are due and merge what they wrote.

    Raises:
        Suspended: a task asks a person.
        LeftOpen: a task failed, or what they wrote cannot be merged.
        StepMismatch: a task is due whose node the graph does not have any more.
    """
    return await _SuperStep(plan, state, run).make()


class _SuperStep:
    __slots__ = (
        "asks",
        "entries",
        "failures",
        "label",
        "plan",
        "record",
        "results",
        "run",
        "state",
        "stopped",
        "wrote",
    )

    def __init__(self, plan: Plan, state: AgentState, run: SegmentContext) -> None:
        self.plan, self.run, self.state = plan, run, state
        record = state.metadata.get(RECORD)
        self.record: FrozenDict[str, Any] = _NEW if record is None or not state.iteration else record
        #: What is written at the end: entries of the metadata, and who wrote each key.
        self.entries: dict[str, Any] = {}
        self.wrote: dict[str, str] = {}
        self.results: list[Any] = []
        self.failures: list[tuple[str, BaseException]] = []
        self.asks = False
        self.stopped: NodeError | None = None
        self.label: Label = CLEAN

    async def make(self) -> AgentState:
        plan, run = self.plan, self.run
        try:
            tasks, waits = self._start() if not self.state.iteration else (self.record["next"], self.record["waits"])
        except (NodeError, ValueError) as e:
            raise LeftOpen(str(e), e) from e
        entries = [self._entry(i, task) for i, task in enumerate(tasks)]
        await self._reserve(entries)
        self.results = [None] * len(tasks)
        if len(tasks) == 1:
            await self._run_task(entries[0], tasks[0])
        else:
            bodies = [(partial(self._run_task, e, t), True) for e, t in zip(entries, tasks, strict=True)]
            await run_together(run, bodies, plan.at_once)
        if self.stopped is not None:
            return run.fail(self.state, "NodeError", self.stopped)
        if self.failures:
            name, error = self.failures[0]
            more = f"; {len(self.failures) - 1} more failed" if len(self.failures) > 1 else ""
            raise LeftOpen(f"{_describe(name, error)}{more}", error)
        if self.asks:
            raise Suspended
        if any(result is None for result in self.results):
            return self.state  # the run is ending: what was not begun is not merged
        try:
            return self._merge(tasks, waits)
        except NodeError as e:
            raise LeftOpen(str(e), e) from e

    # -- what is due ------------------------------------------------------------------------------

    def _start(self) -> tuple[tuple[Task, ...], dict[str, tuple[str, ...]]]:
        """Merge the input, and find the first tasks."""
        message = self.state.messages[-1]
        given = freeze_update(START, from_prompt(message.text), self.plan.keys)
        self._write(START, given, is_input=True)
        self.wrote.clear()  # the nodes of this super-step may write over it
        return self.plan.follow([(START, (), True)], {}, lambda: copy_values(self._metadata()))

    def _entry(self, task: int, due: Task) -> TaskEntry:
        node = self.plan.nodes.get(due[0])
        if node is None:
            near = closest(due[0], self.plan.nodes)
            hint = f"; did you mean to rename it to {near!r}?" if near else ""
            error = StepMismatch(
                f"thread {self.run.thread_id!r} is to go on with the node {due[0]!r}, which the graph does not have"
                f"{hint}: resume it with the graph that it was begun with, or fork it before"
            )
            self.run.host.stop(error)
            raise error
        return TaskEntry(step_id=StepId(self.state.iteration, "node", task, name=due[0]), node=node, task=task)

    async def _reserve(self, entries: list[TaskEntry]) -> None:
        """Give each task that may start children its part of what is left to spend."""
        run = self.run
        if not run.is_limited:
            return
        may = [e for e in entries if e.node.takes_context]
        for entry, account in zip(may, run.reserve([e.task for e in may]) if may else (), strict=True):
            entry.account = account
            if run.resumed:
                await restore_children(account, run.host, entry.step_id)

    # -- one task ---------------------------------------------------------------------------------

    async def _run_task(self, entry: TaskEntry, due: Task) -> None:
        """One task from what is on record to its outcome; failures and questions are kept for the end."""
        host, node, tries = self.run.host, entry.node, entry.node.retries
        while True:
            found = host.find_step(entry.at, entry.digest)
            if type(found) is Outcome:
                if found.error is None:
                    await self._take(entry, found.value, replayed=True)
                    return
                entry.failed = list(found.value or ())  # of all attempts so far
                entry.attempt += 1
                continue
            if host.questions:
                entry.question = "unknown"
                given = entry.find_answer(self.run)
                if given is not None and await self._obey(entry, str(given[1])):
                    return
                if given is not None:
                    continue
                if host.is_waiting(entry.at, (entry.digest,)):
                    self.asks = True
                    return
            if type(found) is Intent and found.policy == "once":
                await self._ask_unknown(entry, f"node {node.name!r} was under way when the process ended")
                return
            if self.run.halted or (self.run.deadline is not None and self.run.is_out_of_time()):
                return
            if not await self._try(entry, due, found, is_last=not tries):
                return
            tries -= 1

    async def _try(self, entry: TaskEntry, due: Task, found: Any, *, is_last: bool) -> bool:
        """Enter the node once; whether it is to be tried again."""
        run, host, node = self.run, self.run.host, entry.node
        if run.has_listener(NodeStartEvent):
            await run.emit(NodeStartEvent(node=node.name, task=entry.task, attempt=entry.attempt))
        entry.answered, entry.raised_by_context = 0, None
        try:
            value = await enter_step(entry, run, partial(self._enter, entry, due), node.effect, found)  # type: ignore[arg-type]
        except BaseException as e:  # whatever a node raises is its task's error
            asking = find_question(e)
            failed = find_failure(e)
            if asking is entry.raised_by_context and asking is not None:
                entry.question = entry.raised_as
                await self._ask(entry, asking)
                return False
            if asking is not None:
                failed = NodeError(node.name, "raised an Interrupt itself; ctx.interrupt(...) returns the answer")
            if failed is None:
                raise
            if host.stop_error is not None:
                raise host.stop_error from None
            if isinstance(failed, OutcomeUnknown):
                await self._ask_unknown(entry, f"node {node.name!r}: it is not known what came of {failed}")
                return False
            return await self._fail(entry, failed, is_last=is_last)
        await self._settle(entry, value)
        return False

    async def _enter(self, entry: TaskEntry, due: Task) -> FrozenDict[str, Any]:
        """The node's body: what it returned, as it is recorded."""
        node, run = entry.node, self.run
        if due[1] is None:
            values = copy_values(self._metadata(), node.reads)
        else:
            values = copy_value(due[1])
        arguments: tuple[Any, ...] = (values,)
        if node.takes_context:
            key = f"{run.run_id}/{entry.step_id.iteration}/{entry.task}:{node.name}"
            arguments = (values, NodeContext(entry, run, key))
        limit = node.timeout if run.deadline is None else time_limit(node.timeout, run.deadline)
        if limit is None:
            made = await self._call(entry, arguments)
        else:
            with anyio.move_on_after(limit) as scope:
                made = await self._call(entry, arguments)
            if scope.cancelled_caught:
                raise TimeoutError(f"it did not finish within {limit:.3g} s")
        goto: Any = ()
        if isinstance(made, Command):
            to = made.goto if isinstance(made.goto, list | tuple) else (made.goto,)
            goto, made = tuple(self.plan.task(node.name, each, node.goto, "it goes to") for each in to), made.update
        update = freeze_update(node.name, made, self.plan.keys)
        if node.writes is not None and not update.keys() <= set(node.writes):
            extra = ", ".join(map(repr, sorted(update.keys() - set(node.writes))))
            raise NodeError(node.name, f"wrote {extra}, and declares writes={node.writes!r}")
        record: dict[str, Any] = {"update": update}
        if goto:
            record["goto"] = goto
        if entry.read is not CLEAN:
            record["label"] = (entry.read.reads, tuple(sorted(entry.read.sources)))
        kept: FrozenDict[str, Any] = freeze(record)
        return kept

    async def _call(self, entry: TaskEntry, arguments: tuple[Any, ...]) -> Any:
        node = entry.node
        if node.is_async:
            return await node.run(*arguments)
        return await call_in_thread(partial(node.run, *arguments), entry)

    async def _settle(self, entry: TaskEntry, value: FrozenDict[str, Any]) -> None:
        is_alone = len(self.results) == 1 and not self.run.has_listener(NodeCompleteEvent)
        await self.run.host.settle(entry.at, value, entry.digest, when="next" if is_alone else "now")
        await self._take(entry, value)

    async def _take(self, entry: TaskEntry, value: FrozenDict[str, Any], *, replayed: bool = False) -> None:
        self.results[entry.task] = value
        if "label" in value:
            reads, sources = value["label"]
            self.label |= Label(reads, frozenset(sources))
        if self.run.has_listener(NodeCompleteEvent):
            update = value["update"]
            event = NodeCompleteEvent(node=entry.node.name, task=entry.task, update=update, replayed=replayed)
            await self.run.emit(event)

    async def _fail(self, entry: TaskEntry, error: BaseException, *, is_last: bool) -> bool:
        """Record that an attempt failed; whether there is another one now."""
        run, text = self.run, f"{type(error).__name__}: {error}"
        await run.host.settle(entry.at, tuple(entry.failed), entry.digest, text)
        if run.has_listener(NodeCompleteEvent):
            await run.emit(NodeCompleteEvent(node=entry.node.name, task=entry.task, error=text))
        entry.attempt += 1
        if not is_last:
            return True
        fallback = self.plan.fallbacks.get(entry.node.name)
        if fallback is None:
            self.failures.append((entry.node.name, error))
        else:
            await self._settle(entry, FrozenDict(update=EMPTY, goto=((fallback, None),), failed=text))
        return False

    # -- questions --------------------------------------------------------------------------------

    async def _ask(self, entry: TaskEntry, asking: Interrupt) -> None:
        self.asks = True
        await ask_person(entry, asking, self.run, tool_name=entry.node.name)

    async def _ask_unknown(self, entry: TaskEntry, what: str) -> None:
        entry.question = "unknown"
        await self._ask(entry, Interrupt(f"{what}. Has it happened?", (AGAIN, SKIP, STOP)))

    async def _obey(self, entry: TaskEntry, answer: str) -> bool:
        """Do what a person says of a task whose outcome is unknown; whether the task is over."""
        if answer == AGAIN.label:
            entry.attempt += 1
            return False
        if answer == STOP.label:
            self.stopped = NodeError(entry.node.name, "a person stopped the run, as its outcome is unknown")
        else:
            await self._settle(entry, FrozenDict(update=EMPTY))
        return True

    # -- merging ----------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        return {**self.state.metadata, **self.entries} if self.entries else self.state.metadata

    def _merge(self, tasks: tuple[Task, ...], waits: Any) -> AgentState:
        done = []
        for (name, _), result in zip(tasks, self.results, strict=True):
            self._write(name, result["update"])
            done.append((name, result.get("goto", ()), "failed" not in result))
        following, left = self.plan.follow(done, waits, lambda: copy_values(self._metadata()))
        self.run.because(f"{_names(tasks)} -> {_names(following)}")
        ran = self.record["ran"]
        new = [name for name in dict.fromkeys(name for name, _ in tasks) if name not in ran]
        self.entries[RECORD] = freeze(
            {
                "run": self.state.run_id,
                "next": following,
                "waits": left,
                "ran": (*ran, *new) if new else ran,
                "wrote": tuple(dict.fromkeys((*self.record["wrote"], *self.wrote))) if self.run.parent_run_id else (),
            }
        )
        state = self.state.with_entries(self.entries)
        return state if self.label is CLEAN else state.with_label(self.label)

    def _write(self, node: str, update: FrozenDict[str, Any], *, is_input: bool = False) -> None:
        reducers, entries, metadata = self.plan.reducers, self.entries, self.state.metadata
        for key, value in update.items():
            name, reducer, before = PREFIX + key, reducers.get(key), self.wrote.get(key)
            if reducer is None:
                if before is not None:
                    raise ConflictingUpdate(before, node, key)
                entries[name] = value
            elif name in entries or name in metadata:
                left = entries[name] if name in entries else metadata[name]
                entries[name] = reduce_value(node, key, reducer, left, value)
            else:
                entries[name] = value
            self.wrote[key] = node
            if reducer is not None and self.run.parent_run_id and not is_input:
                # A child gives back what its nodes have added, not what it was given.
                added = ADDED + key
                left = entries.get(added, metadata.get(added, _NEW))
                entries[added] = value if left is _NEW else reduce_value(node, key, reducer, left, value)


def _names(tasks: tuple[Task, ...]) -> str:
    names = [name for name, _ in tasks]
    return "END" if not names else ", ".join(names if len(names) <= 8 else (*names[:8], f"{len(names) - 8} more"))


def _describe(name: str, error: BaseException) -> str:
    if isinstance(error, NodeError):
        return str(error)
    return f"node {name!r}: {type(error).__name__}: {error}"
