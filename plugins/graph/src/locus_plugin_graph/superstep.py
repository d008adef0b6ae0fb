"""One super-step: all tasks that are due, each a step of the journal, their updates merged, and what follows.

What holds for each:

- A task has a step id of its place in the committed frontier: ``3/node/0:plan`` is the first task of the fourth
  super-step. Its outcome is recorded when it ends, whatever its siblings do; they finish when it fails.
- Updates are merged in the order of the frontier, never in that of completion. Routers are asked once, with the merged
  values; where they send to is committed with the merge.
- Nothing is merged while a task failed, waits for a person or was not begun. The run is left open then, and a resume
  enters only what has no result on record.
- A limit of the run that is reached inside a task ends the run with the limit's name, once no task has failed or asks.
  Tasks that have finished are merged first; those that have not stay due in the record.
- Of what was under way when a process died, the recorded effect decides: pure and keyed tasks are entered again, the
  one of ``once`` asks a person, and so does a step inside a task whose outcome is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus.core import EMPTY, FrozenDict, freeze
from locus.core.errors import StepMismatch, closest
from locus.core.journal import StepId
from locus.core.labels import CLEAN
from locus.loop import LeftOpen, Suspended, restore_children
from locus.tools import run_together
from locus_plugin_graph.context import TaskEntry
from locus_plugin_graph.errors import ConflictingUpdate, NodeError
from locus_plugin_graph.plan import START, Plan, Task
from locus_plugin_graph.task import TaskRun
from locus_plugin_graph.values import ADDED, PREFIX, RECORD, copy_values, freeze_update, from_prompt, reduce_value

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.loop import SegmentContext

__all__ = ["super_step"]

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
    __slots__ = ("entries", "plan", "record", "run", "state", "wrote")

    def __init__(self, plan: Plan, state: AgentState, run: SegmentContext) -> None:
        self.plan, self.run, self.state = plan, run, state
        record = state.metadata.get(RECORD)
        self.record: FrozenDict[str, Any] = _NEW if record is None or not state.iteration else record
        #: What is written at the end: entries of the metadata, and who wrote each key.
        self.entries: dict[str, Any] = {}
        self.wrote: dict[str, str] = {}

    async def make(self) -> AgentState:
        plan, run = self.plan, self.run
        try:
            due, waits = self._start() if not self.state.iteration else (self.record["next"], self.record["waits"])
        except (NodeError, ValueError) as e:
            raise LeftOpen(str(e), e) from e
        tasks = [
            TaskRun(plan, run, self.state, self._metadata, self._entry(i, each), each) for i, each in enumerate(due)
        ]
        await self._reserve(tasks)
        if len(tasks) == 1:
            tasks[0].is_alone = True
            await tasks[0].go()
        else:
            await run_together(run, [(task.go, True) for task in tasks], plan.at_once)
        for task in tasks:
            if task.stopped is not None:
                return run.fail(self.state, "NodeError", task.stopped)
        self._leave_open(tasks)
        for task in tasks:
            run.stop = run.stop or task.limit
        unfinished = [each for each, task in zip(due, tasks, strict=True) if task.result is None]
        if unfinished and run.stop is None:
            return self.state  # it is being cancelled: what was not begun is not merged
        try:
            return self._merge(tasks, due, waits, unfinished)
        except NodeError as e:
            raise LeftOpen(str(e), e) from e

    def _leave_open(self, tasks: list[TaskRun]) -> None:
        """Leave the run open where a task failed or asks a person, whatever limit another one has met.

        The limit is on record: it ends the run once these have come to their ends, which may need nothing of it.

        Raises:
            LeftOpen: a task failed.
            Suspended: a task asks.
        """
        run = self.run
        failures = [(task.entry.node.name, task.failure) for task in tasks if task.failure is not None]
        if failures:
            run.stop = None
            name, error = failures[0]
            more = f"; {len(failures) - 1} more failed" if len(failures) > 1 else ""
            raise LeftOpen(f"{_describe(name, error)}{more}", error)
        if any(task.asks for task in tasks):
            run.stop = None
            raise Suspended

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

    async def _reserve(self, tasks: list[TaskRun]) -> None:
        """Give each task that may start children its part of what is left to spend."""
        run = self.run
        if not run.is_limited:
            return
        may = [task.entry for task in tasks if task.entry.node.takes_context]
        for entry, account in zip(may, run.reserve([e.task for e in may]) if may else (), strict=True):
            entry.account = account
            if run.resumed:
                await restore_children(account, run.host, entry.step_id)

    # -- merging ----------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        return {**self.state.metadata, **self.entries} if self.entries else self.state.metadata

    def _merge(self, tasks: list[TaskRun], due: tuple[Task, ...], waits: Any, unfinished: list[Task]) -> AgentState:
        """The state with what the tasks wrote, and what follows.

        Where a limit ends the run, some are unfinished: they stay due, and no router is asked.
        """
        done, label = [], CLEAN
        for task in tasks:
            if task.result is not None:
                self._write(task.entry.node.name, task.result["update"])
                done.append((task.entry.node.name, task.result.get("goto", ()), "failed" not in task.result))
                label = label if task.label is CLEAN else label | task.label
        following, left = tuple(unfinished), waits
        if not unfinished:
            following, left = self.plan.follow(done, waits, lambda: copy_values(self._metadata()))
        self.run.because(f"{_names(due)} -> {_names(following)}")
        ran = self.record["ran"]
        new = [name for name in dict.fromkeys(name for name, _, _ in done) if name not in ran]
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
        return state if label is CLEAN else state.with_label(label)

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
