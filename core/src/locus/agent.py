"""`Agent`: configuration in, `Run` out.

An agent is immutable: one object serves any number of concurrent runs. What it needs is resolved when it is built, so
a wrong name fails there and not in the middle of a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload
from uuid import uuid4

import anyio

from locus.core.errors import ConfigError, InterruptMismatch
from locus.core.frozen import FrozenDict
from locus.core.lazy import Lazy
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.hooks.report import run_report
from locus.limits import Budget, NoHaltWarning, agent_condition, child_loop, tightened
from locus.loop.active import ActiveRun
from locus.loop.react import Loop
from locus.loop.router import Router
from locus.loop.runner import drive
from locus.memory.clock import Clock, SystemClock
from locus.memory.host import JournalHost
from locus.memory.latest import LatestStore
from locus.memory.store import Claim, JournalStore
from locus.memory.thread import Ended, Segment, ended_before
from locus.models.protocol import Model, ModelSettings
from locus.prompt import Prompt, Turn
from locus.result import AgentResult
from locus.run import Run, Sink

if TYPE_CHECKING:
    from locus import assembly
    from locus.config import Config
    from locus.core.termination import TerminationCondition
    from locus.hooks.discovery import Catalogue
    from locus.hooks.manifest import Plugin
    from locus.memory.conversation import ConversationManager
    from locus.models import output
    from locus.models.output import OutputSchema
else:
    assembly = Lazy("locus.assembly")
    output = Lazy("locus.models.output")

__all__ = ["Agent", "Budget", "NoHaltWarning"]

Deps = TypeVar("Deps")
Out = TypeVar("Out")
Given = TypeVar("Given")


class _Live:
    """The runs of one agent that are active now; what `Agent.cancel` looks through."""

    __slots__ = ("_lock", "_runs")

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: set[ActiveRun] = set()

    def add(self, run: ActiveRun) -> None:
        with self._lock:
            self._runs.add(run)

    def discard(self, run: ActiveRun) -> None:
        with self._lock:
            self._runs.discard(run)

    def all(self) -> tuple[ActiveRun, ...]:
        with self._lock:
            return tuple(self._runs)


class Agent(Generic[Deps, Out]):
    """An agent: a model, its tools, and when to stop.

    Args:
        model: ``"provider:model"`` or a `Model`; taken from ``config`` when left out.
        tools: functions, `Tool` values, or objects whose methods are tools.
        system_prompt: what stands before the conversation.
        name: a stable name, ``state.agent_id``.
        termination: when to stop; or-ed with ``max_iterations``, ``terminal_tools`` and ``NoToolCalls``.
        max_iterations: short for ``MaxIterations(n)``: exactly n model calls at most.
        stop_on_text: False lets the agent go on after an answer without tool calls.
        terminal_tools: names of tools whose successful call ends the run.
        token_budget: what ``TokenLimit()`` compares with; given, it is or-ed in.
        confidence_threshold: what ``ConfidenceMet()`` compares with.
        tool_loop_threshold: how many identical consecutive calls make a loop.
        tool_execution: ``"concurrent"``, or ``"sequential"``: one after another.
        max_revisions: how often reviewers and the output schema may send a run's answers back.
        output_schema: the type of the final answer; ``result.parsed`` has it.
        model_settings: how the model is to answer.
        conversation_manager: keeps long conversations inside the model's window.
        checkpointer: where journals are kept: a `JournalStore`, or ``"scheme:rest"`` of a plugin. Without one a
            journal lives as long as its `AgentResult`.
        hooks: `Hook` objects, or objects with `hookimpl` methods.
        plugins: names of installed plugins, or manifests.
        config: settings read by `locus.config.load_config`; the library reads no file by itself.
        clock: the source of time, for tests.
        options: a plugin's name (``True``, or its settings as a dict or object), or a keyword that a plugin's
            manifest declares.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        PluginError: a plugin that was asked for cannot be used.
    """

    __slots__ = (
        "_live",
        "_loop",
        "_store",
        "_system",
        "_template",
        "name",
    )

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        tools: Iterable[object] = (),
        system_prompt: str | None = None,
        name: str | None = None,
        termination: TerminationCondition | None = None,
        max_iterations: int | None = None,
        stop_on_text: bool = True,
        terminal_tools: Iterable[str] = (),
        token_budget: int | None = None,
        confidence_threshold: float = 0.8,
        tool_loop_threshold: int = 3,
        tool_execution: Literal["concurrent", "sequential"] = "concurrent",
        max_revisions: int = 2,
        output_schema: type[Out] | OutputSchema[Out] | Mapping[str, Any] | None = None,
        model_settings: ModelSettings | None = None,
        conversation_manager: ConversationManager | None = None,
        checkpointer: JournalStore | str | None = None,
        hooks: Sequence[object] = (),
        plugins: Sequence[str | Plugin] = (),
        config: Config | None = None,
        catalogue: Catalogue | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        if tool_execution not in ("concurrent", "sequential"):
            raise ConfigError(f"tool_execution is {tool_execution!r}; use 'concurrent' or 'sequential'")
        self.name = name
        parts = assembly.assemble(
            model=model,
            tools=tools,
            checkpointer=checkpointer,
            hooks=hooks,
            plugins=plugins,
            config=config,
            catalogue=catalogue,
            options=options,
            own_options=_OPTIONS,
        )
        configured = assembly.configured(config)
        terminals = frozenset(terminal_tools)
        condition = agent_condition(
            termination,
            max_iterations=max_iterations,
            terminal_tools=terminals,
            token_budget=token_budget,
            stop_on_text=stop_on_text,
            model=parts.model,
            configured=configured,
        )
        self._loop = Loop.wire(
            model=parts.model,
            tools=parts.tools,
            router=Router(condition, parts.reflect),
            hooks=parts.hooks.table,
            plugins=parts.hooks.reports,
            versions=FrozenDict(run_report(parts.hooks.reports).versions),
            manager=conversation_manager,
            settings=model_settings or ModelSettings(),
            output=assembly.schema_of(output_schema),
            max_revisions=max_revisions,
            sequential=tool_execution == "sequential",
            resolve=parts.resolve,
            clock=clock or SystemClock(),
        )
        self._store = parts.store
        system = system_prompt if system_prompt is not None else configured.get("system_prompt")
        self._system = Message(Role.SYSTEM, system) if system else None
        bounds = condition.bounds()
        template: dict[str, Any] = {
            "agent_id": name,
            "max_iterations": bounds.iterations if bounds.iterations is not None else 0,
            "confidence_threshold": confidence_threshold,
            "tool_loop_threshold": tool_loop_threshold,
            "terminal_tools": terminals,
            "token_budget": token_budget,
        }
        self._template = FrozenDict(template)
        AgentState(**template)  # refuses a threshold out of range here, not in the first run
        self._live = _Live()

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, "_live"):
            raise AttributeError(f"an Agent is immutable; build another one with another {name}")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<Agent {self.name or self._loop.model.name} tools={len(self._loop.tools)}>"

    # -- what it is -------------------------------------------------------------------------------

    @property
    def condition(self) -> TerminationCondition:
        """The condition that the agent really runs with; see its ``explain`` and ``bounds``."""
        return self._loop.router.condition

    @property
    def loop(self) -> Loop:
        """The wiring: model, tools, hooks, router."""
        return self._loop

    # -- running ----------------------------------------------------------------------------------

    @overload
    def run(
        self,
        prompt: Prompt,
        *,
        thread_id: str | None = ...,
        deps: Deps | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        model_settings: ModelSettings | None = ...,
        output_schema: None = ...,
        termination: TerminationCondition | None = ...,
    ) -> Run[Out]: ...
    @overload
    def run(
        self,
        prompt: Prompt,
        *,
        thread_id: str | None = ...,
        deps: Deps | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        model_settings: ModelSettings | None = ...,
        output_schema: type[Given],
        termination: TerminationCondition | None = ...,
    ) -> Run[Given]: ...
    def run(
        self,
        prompt: Prompt,
        *,
        thread_id: str | None = None,
        deps: Deps | None = None,
        metadata: Mapping[str, Any] | None = None,
        model_settings: ModelSettings | None = None,
        output_schema: Any = None,
        termination: TerminationCondition | None = None,
    ) -> Run[Any]:
        """A run, to be awaited, iterated or entered.

        Args:
            prompt: text, content blocks, messages, or an `AgentState` to start from.
            thread_id: the conversation to continue, or to begin under that name.
            deps: what tools get as ``ctx.deps``; never saved.
            metadata: entries for ``state.metadata``.
            model_settings: over those of the agent.
            output_schema: in place of the agent's.
            termination: another reason to stop, or-ed with the agent's condition.

        Raises:
            InputError: the prompt cannot be used.
            ConfigError: the output schema cannot be used.
        """
        turn = Turn.of(prompt)
        segment = Segment(
            thread_id=thread_id if thread_id is not None else f"thread-{uuid4().hex}",
            worker=_worker(),
            before=turn.before,
            prompt=turn.message,
            seed=turn.seed,
            system=self._system,
            metadata=FrozenDict(metadata or {}),
            template=self._template,
        )
        return self._run(segment, deps, model_settings, output_schema, termination, None)

    @overload
    def resume(
        self,
        thread: str | AgentResult[Any],
        answer: Any = ...,
        *,
        deps: Deps | None = ...,
        model_settings: ModelSettings | None = ...,
        output_schema: None = ...,
        termination: TerminationCondition | None = ...,
    ) -> Run[Out]: ...
    @overload
    def resume(
        self,
        thread: str | AgentResult[Any],
        answer: Any = ...,
        *,
        deps: Deps | None = ...,
        model_settings: ModelSettings | None = ...,
        output_schema: type[Given],
        termination: TerminationCondition | None = ...,
    ) -> Run[Given]: ...
    def resume(
        self,
        thread: str | AgentResult[Any],
        answer: Any = None,
        *,
        deps: Deps | None = None,
        model_settings: ModelSettings | None = None,
        output_schema: Any = None,
        termination: TerminationCondition | None = None,
    ) -> Run[Any]:
        """Go on with a run that a crash, a cancellation or a question left open.

        Args:
            thread: its thread id, or the `AgentResult` of the interrupted run.
            answer: the answer to the open question; ``{interrupt_id: answer}`` when several are open; None
                after a crash.
            deps: again, because they are never saved.
            model_settings: as for `run`.
            output_schema: as for `run`.
            termination: as for `run`.

        Raises, from the run:
            NothingToResume: no run is open on the thread.
            InterruptMismatch: the answer fits no open question.
        """
        store = None
        thread_id = thread if isinstance(thread, str) else thread.thread_id
        if isinstance(thread, AgentResult):
            store = thread.store
            answers = _answers(answer, tuple(q.interrupt_id for q in thread.interrupts))
        else:
            answers = _answers(answer, None)
        segment = Segment(thread_id=thread_id, worker=_worker(), answers=answers, template=self._template)
        if store is None and self._store is None:
            raise ConfigError(
                "this agent has no checkpointer, so nothing is kept under a thread id; resume with the AgentResult, "
                "or build the agent with checkpointer="
            )
        return self._run(segment, deps, model_settings, output_schema, termination, store)

    def run_sync(
        self,
        prompt: Prompt,
        *,
        thread_id: str | None = None,
        deps: Deps | None = None,
        metadata: Mapping[str, Any] | None = None,
        model_settings: ModelSettings | None = None,
        output_schema: Any = None,
        termination: TerminationCondition | None = None,
    ) -> AgentResult[Any]:
        """`run` for callers without an event loop.

        Raises:
            RuntimeError: an event loop runs in this thread; use ``await agent.run(...)`` there.
        """
        run = self.run(
            prompt,
            thread_id=thread_id,
            deps=deps,
            metadata=metadata,
            model_settings=model_settings,
            output_schema=output_schema,
            termination=termination,
        )

        async def main() -> AgentResult[Any]:
            return await run

        return anyio.run(main)

    def cancel(self, reason: str = "", *, run_id: str | None = None, thread_id: str | None = None) -> int:
        """End runs of this agent that are active now, at their next safe point. Safe from any thread.

        Args:
            reason: shown as ``"Cancelled: <reason>"``.
            run_id: only the run named.
            thread_id: only the runs of that thread.

        Returns:
            How many runs were told; runs that start later are not concerned.
        """
        told = 0
        for run in self._live.all():
            named = (run_id is None or run.run_id == run_id) and (thread_id is None or run.thread_id == thread_id)
            if named:
                run.cancel(reason)
                told += 1
        return told

    # -- how --------------------------------------------------------------------------------------

    def _run(
        self,
        segment: Segment,
        deps: Any,
        settings: ModelSettings | None,
        output_schema: Any,
        termination: TerminationCondition | None,
        store: JournalStore | None,
    ) -> Run[Any]:
        loop = self._loop
        if termination is not None:
            loop = tightened(loop, termination)
        schema = None if output_schema is None else assembly.schema_of(output_schema)
        active = ActiveRun(loop, segment.thread_id, deps=deps, settings=settings, output=schema)
        main = partial(self._main, active, segment, store)
        return Run(main, active.cancel)

    async def _main(
        self, active: ActiveRun, segment: Segment, store: JournalStore | None, sink: Sink | None
    ) -> AgentResult[Any]:
        kept = store if store is not None else self._store
        own = kept if kept is not None else LatestStore()
        if sink is not None:
            active.sink = sink
        self._live.add(active)
        try:
            ended = await drive(active, own, segment)
        finally:
            self._live.discard(active)
        return _result(active, ended, own if self._store is None else None)

    async def run_as_child(
        self,
        prompt: Prompt,
        *,
        thread_id: str,
        parent: ActiveRun,
        budget: Budget | None,
        answers: dict[str, Any] | None,
    ) -> AgentResult[Any]:
        """Run as a part of another agent's run; for ``ctx.run_child``."""
        store = self._store if self._store is not None else parent.host.store
        loop = child_loop(self._loop, budget or Budget(), parent)
        active = ActiveRun(loop, thread_id, deps=parent.deps, parent=parent)
        entries = await store.read(thread_id)
        if not entries:
            turn = Turn.of(prompt)
            segment = Segment(
                thread_id=thread_id,
                worker=_worker(),
                before=turn.before,
                prompt=turn.message,
                seed=turn.seed,
                system=self._system,
                template=self._template,
            )
        else:
            # The child's own journal remembers it: a finished child is not run again, an asking one still asks.
            active.host = JournalHost(store, Claim(thread_id=thread_id, token="", head=0, entries=entries))
            ended = ended_before(active.host, answered=answers is not None)
            if ended is not None:
                return _result(active, ended, None)
            segment = Segment(thread_id=thread_id, worker=_worker(), answers=answers, template=self._template)
        self._live.add(active)
        try:
            ended = await drive(active, store, segment)
        finally:
            self._live.discard(active)
        return _result(active, ended, None)


_OPTIONS = tuple(n for n in Agent.__init__.__annotations__ if n not in ("return", "options"))


def _worker() -> str:
    return f"pid {os.getpid()}"


def _answers(answer: Any, questions: tuple[str, ...] | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    if isinstance(answer, Mapping) and (questions is None or set(answer) <= set(questions)):
        return dict(answer)
    if questions is not None and len(questions) > 1:
        raise InterruptMismatch(
            f"{len(questions)} questions are open ({', '.join(questions)}); answer with {{id: answer}}"
        )
    return {"": answer}


def _result(active: ActiveRun, ended: Ended, store: JournalStore | None) -> AgentResult[Any]:
    state = ended.state
    last = state.last_assistant
    text = last.text if last is not None and not ended.questions else ""
    parsed = None
    if active.output is not None and text:
        try:
            parsed = active.output.parse(text)
        except output.OutputError as e:
            active.report("output", str(e))
    reports = {**active.reports, "plugins": run_report(active.loop.plugins, active.health)}
    return AgentResult(
        run_id=state.run_id,
        thread_id=active.thread_id,
        message=text,
        parsed=parsed,
        stop_reason=ended.reason,
        satisfied=ended.satisfied,
        detail=ended.detail,
        state=state,
        usage=state.usage,
        reports=reports,
        interrupts=ended.questions,
        error=ended.error,
        store=store,
    )
