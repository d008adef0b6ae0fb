"""`Thinking`: one Think of a run that has a plan.

It ends in one of three ways: the calls of all steps that can be made now, without asking the model; the final answer;
or without a plan, where the agent's model works alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from attrs import evolve, fields

from locus.core.errors import BudgetExceeded, JournalError, LocusError, ModelError
from locus.core.messages import Block, Message, Role, TextBlock, ToolCall, plugin_message
from locus.core.state import AgentState, ToolExecution
from locus.plugin import RunContext
from locus.tools import ArgumentError
from locus_plugin_planning.advisor import EXECUTOR, PLANNER, Advisor
from locus_plugin_planning.errors import AnswerUnusable
from locus_plugin_planning.events import PlanEndEvent, PlanEvent, ReplanEvent, StepEvent
from locus_plugin_planning.lock import is_imported, words_of_the_user
from locus_plugin_planning.plan import Plan, Step
from locus_plugin_planning.record import NAME, Record
from locus_plugin_planning.references import Unresolved, fill_references
from locus_plugin_planning.report import PlanningReport
from locus_plugin_planning.settings import PlanningSettings

__all__ = ["Thinking", "build_report"]


class _GivenUp(Exception):
    """The plan cannot be followed any longer."""

    def __init__(self, how: str, reason: str = "") -> None:
        self.how, self.reason = how, reason
        super().__init__(reason)


class Thinking:
    """One Think.

    Args:
        settings: of the plugin.
        state: the state.
        run: the run.
        record: what is known of the plan, or None before the first one.
    """

    def __init__(self, settings: PlanningSettings, state: AgentState, run: RunContext, record: Record | None) -> None:
        self.settings, self.state, self.run = settings, state, run
        self.advisor = Advisor(settings, run, self._count)
        self.known = record
        self.record = Record.first(state) if record is None else record
        self.outcomes = {execution.call_id: execution for execution in state.tool_executions}
        last = state.last_assistant
        #: Calls of the last turn, which have had their chance.
        self.made = {call.id for call in last.tool_calls} if last is not None else set()
        #: What comes up in this Think: steps that failed before they could be called, and notes for the model.
        self.failed: dict[str, str] = {}
        self.said: list[str] = []
        self._found: tuple[Record, dict[str, str]] | None = None

    async def think(self) -> AgentState:
        """The state after this Think."""
        try:
            if self.settings.locked and self.known is not None and is_imported(self.state):
                raise _GivenUp("react", "the plan was imported with the thread")
            if self.known is None:
                await self._plan()
            else:
                await self._tell_outcomes()
            given = await self._next()
        except JournalError:
            raise  # no failure of the plan: this worker must not go on
        except (_GivenUp, LocusError) as e:
            return await self._without(e)
        self._report()
        if given is not None:
            return await self.run.think(self._save(self.state), given)
        return await self.run.think(self._save(self._with_what_was_said()))

    # -- the three ways out -----------------------------------------------------------------------

    async def _next(self) -> Message | None:
        """The turn that needs no model, or None where the model is to answer."""
        while True:
            await self._replan_if_needed()
            ready = self._ready()
            thoughts = [step for step, _ in ready if step.tool is None]
            if thoughts:
                await self._think_of(thoughts[0])
                continue
            calls, results = [], self._results()
            for step, call_id in ready:
                made = await self._call_of(step, call_id, results)
                if made is None:
                    break
                calls.append((step, made))
            if self.failed:
                continue
            if calls:
                return await self._turn(calls)
            return await self._answer()

    async def _turn(self, calls: list[tuple[Step, ToolCall]]) -> Message:
        for step, call in calls:
            await self._tell(step, "started", call_id=call.id)
        text = "\n".join(self.said)
        blocks: list[Block] = [TextBlock(text)] if text else []
        return Message(Role.ASSISTANT, (*blocks, *(call for _, call in calls)))

    async def _answer(self) -> Message | None:
        """All is done."""
        if self.record.plan.answer:
            try:
                text = fill_references({"$join": self.record.plan.answer}, self._results())
            except Unresolved as e:
                raise _GivenUp("react", f"the answer cannot be made of the results: {e}") from None
            await self._end("template")
            return Message(Role.ASSISTANT, text)
        await self._end("answered")
        return None

    async def _without(self, error: _GivenUp | LocusError) -> AgentState:
        """Leave the rest to the agent's model."""
        how, reason = (error.how, error.reason) if isinstance(error, _GivenUp) else ("react", _why(error))
        started = bool(self._earlier_executions())
        await self._end(how, reason, str(error) if isinstance(error, ModelError) else "")
        if started:
            self.said.append("The plan was given up. What was done stands; what is left is yours to decide.")
        else:
            self.said.clear()  # the plan that nothing came of
        self._report()
        return await self.run.think(self._save(self._with_what_was_said()))

    async def _end(self, how: str, reason: str = "", detail: str = "") -> None:
        turns = self._turns() + (how == "template")
        self.record = evolve(self.record, how=how, reason=reason, steps=len(self._done_steps()), turns=turns)
        await self.run.emit(PlanEndEvent(how=how, reason=f"{reason}: {detail}" if detail else reason))

    def _with_what_was_said(self) -> AgentState:
        if not self.said:
            return self.state
        return self.state.with_message(plugin_message(NAME, "\n".join(["[From the plan of this run.]", *self.said])))

    def _save(self, state: AgentState) -> AgentState:
        return state if self.record is self.known else self.record.save_to(state)

    # -- plans ------------------------------------------------------------------------------------

    async def _plan(self) -> None:
        shown = words_of_the_user(self.state) if self.settings.locked else self.state
        plan = await self.advisor.plan(shown, {}, (), "")
        if not plan.steps:
            raise _GivenUp("unplanned")
        await self._take(plan)

    async def _take(self, plan: Plan) -> None:
        done = {step: call_id for step, call_id in self._done_steps().items() if call_id}
        self.record = evolve(self.record, plan=plan, plans=self.record.plans + 1, done=done)
        self.failed.clear()
        self.said.append(plan.outline)
        await self.run.emit(
            PlanEvent(
                goal=plan.goal,
                steps=tuple(step.id for step in plan.steps),
                outline=plan.outline,
                revision=self.record.plans - 1,
            )
        )

    async def _replan_if_needed(self) -> None:
        found = None if self.settings.locked else self._trouble()
        if found is None:
            return
        step, why = found
        if self.record.replans >= self.settings.max_replans:
            raise _GivenUp("react", f"{why}, and max_replans={self.settings.max_replans} is reached")
        self.record = evolve(self.record, replans=self.record.replans + 1)
        await self.run.emit(ReplanEvent(reason=why, step=step.id, replans=self.record.replans))
        results, described = self._results(), self._describe_steps()
        done = {name: {**described.get(name, {"step": name}), "result": results[name]} for name in self._done_steps()}
        tried = [{**described[name], "failed": error} for name, error in self._failures().items()]
        await self._take(await self.advisor.plan(self.state, done, tried, why))

    def _trouble(self) -> tuple[Step, str] | None:
        """A step that is a reason to replan, and why."""
        failures, done = self._failures(), self._done_steps()
        for step in self.record.plan.steps:
            if step.id in failures:
                return step, f"step {step.id!r} failed"
        if all(step.id in done for step in self.record.plan.steps):
            return None
        for step in self.record.plan.steps:
            if step.decision_point and step.id in done:
                return step, f"the result of step {step.id!r} is known"
        return None

    # -- steps ------------------------------------------------------------------------------------

    def _ready(self) -> list[tuple[Step, str]]:
        done, record = self._done_steps(), self.record
        # Without replanning, a failed step is skipped, with everything that depends on it.
        failed = self._failures() if self.settings.locked else {}
        return [
            (step, record.call_id(number))
            for number, step in enumerate(record.plan.steps)
            if step.id not in done and step.id not in failed and all(needed in done for needed in step.depends_on)
        ]

    def find_next(self, tool: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The ids and arguments of the steps that may be called next, of those that call a tool."""
        self.made.clear()  # the calls that are being decided about
        results = self._results()
        for step, _ in self._ready():
            if step.tool == tool:
                with suppress(Unresolved):
                    yield step.id, fill_references(step.arguments, results)

    async def _think_of(self, step: Step) -> None:
        await self._tell(step, "started")
        try:
            text = await self.advisor.think(self.record.plan.goal, step, self._results())
        except AnswerUnusable as e:
            await self._fails(step, str(e))
            return
        self.record = evolve(self.record, thoughts={**self.record.thoughts, step.id: text})
        self.said.append(f"{step.description or step.id}: {text}")
        await self._tell(step, "done")

    async def _call_of(self, step: Step, call_id: str, results: dict[str, str]) -> ToolCall | None:
        """The call of a step, or None where it cannot be made."""
        assert step.tool is not None
        tool = self.run.registry.get(step.tool)
        try:
            if tool is None:
                raise AnswerUnusable(self.run.registry.unknown(step.tool))
            arguments: dict[str, Any] = fill_references(step.arguments, results)
            if step.decide:
                arguments = await self.advisor.decide(self.record.plan.goal, step, tool, arguments, results)
            bound = tool.bind(arguments)
            if isinstance(bound, ArgumentError):
                raise AnswerUnusable(*map(str, bound.problems))
        except (Unresolved, AnswerUnusable) as e:
            await self._fails(step, str(e))
            return None
        return ToolCall(call_id, step.tool, arguments)

    async def _fails(self, step: Step, error: str) -> None:
        self.failed[step.id] = error
        await self._tell(step, "failed", error=error)

    # -- what came of them ------------------------------------------------------------------------

    def _done_steps(self) -> dict[str, str]:
        """The steps that are done, with the ids of their calls; ``""`` for those of thought."""
        if self._found is None or self._found[0] is not self.record:
            self._found = self.record, self._find_done()
        return self._found[1]

    def _find_done(self) -> dict[str, str]:
        found = dict.fromkeys(self.record.thoughts, "") | dict(self.record.done)
        for step, call_id in self.record.calls():
            execution = self.outcomes.get(call_id)
            if execution is not None and execution.succeeded:
                found[step.id] = call_id
        return found

    def _failures(self) -> dict[str, str]:
        found = dict(self.failed)
        for step, call_id in self.record.calls():
            execution = self.outcomes.get(call_id)
            if execution is not None and execution.error is not None:
                found[step.id] = execution.error
            elif execution is None and call_id in self.made:
                found[step.id] = "it was not run"
        return found

    def _results(self) -> dict[str, str]:
        texts = {step: self.outcomes[call_id].result or "" for step, call_id in self._done_steps().items() if call_id}
        return texts | dict(self.record.thoughts)

    def _describe_steps(self) -> dict[str, dict[str, Any]]:
        """What the planner gets to know about steps: what they called, and with what."""
        executions = {step: self.outcomes.get(call_id) for step, call_id in self._done_steps().items()}
        executions |= {step.id: self.outcomes.get(call_id) for step, call_id in self.record.calls()}
        found = {name: _describe_call(name, execution) for name, execution in executions.items()}
        for step in self.record.plan.steps:
            found[step.id] = {"tool": step.tool, **found.get(step.id, {"step": step.id}), "about": step.description}
        return found

    def _earlier_executions(self) -> list[ToolExecution]:
        """What calls of plans were executed in this run."""
        return [execution for call_id, execution in self.outcomes.items() if self.record.is_call_of_plan(call_id)]

    def _turns(self) -> int:
        """How many turns were made without the model before this Think."""
        return len({execution.iteration for execution in self._earlier_executions()})

    async def _tell_outcomes(self) -> None:
        failures = self._failures()
        for step, call_id in self.record.calls():
            if call_id not in self.made:
                continue
            error = failures.get(step.id)
            await self._tell(step, "done" if error is None else "failed", call_id=call_id, error=error)

    async def _tell(self, step: Step, status: str, *, call_id: str = "", error: str | None = None) -> None:
        await self.run.emit(
            StepEvent(
                step=step.id,
                description=step.description,
                status=status,
                tool_name=step.tool or "",
                call_id=call_id,
                judged=step.needs_judge,
                error=error,
            )
        )

    # -- accounts ---------------------------------------------------------------------------------

    def _count(self, purpose: str) -> None:
        record = self.record
        if purpose == PLANNER:
            self.record = evolve(record, planner_calls=record.planner_calls + 1)
        elif purpose == EXECUTOR:
            self.record = evolve(record, executor_calls=record.executor_calls + 1)

    def _report(self) -> None:
        record = self.record
        if record.running:
            record = evolve(record, steps=len(self._done_steps()), turns=self._turns() + 1)
        self.run.report(NAME, build_report(record))


def build_report(record: Record) -> PlanningReport:
    """The report of a record."""
    return PlanningReport(**{each.name: getattr(record, each.name) for each in fields(PlanningReport)})


def _describe_call(name: str, execution: ToolExecution | None) -> dict[str, Any]:
    if execution is None:
        return {"step": name}
    return {"step": name, "tool": execution.tool_name, "arguments": execution.arguments}


def _why(error: LocusError) -> str:
    if isinstance(error, BudgetExceeded):
        return f"the budget is spent: {error}"
    if isinstance(error, AnswerUnusable):
        return f"the planner's answer cannot be used: {error}"
    if isinstance(error, ModelError):
        return "ModelError"  # the state keeps it, and a replay, which asks no model, knows no more
    return f"{type(error).__name__}: {error}"
