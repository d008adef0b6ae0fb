"""`Engine`: an agent put together. It starts runs, finds them again, and knows which are active.

`Agent` is its face. What an agent runs on is loaded when the first one is built, so that importing `Agent` costs
next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from locus.core.errors import ConfigError, NothingToResume
from locus.core.frozen import FrozenDict
from locus.core.state import AgentState
from locus.journal.clock import Clock, SystemClock
from locus.journal.host import JournalHost
from locus.journal.memory import MemoryStore
from locus.loop._validate import refuse_odd_agent, refuse_odd_run
from locus.loop.assembly import Parts, assemble, configured, schema_of
from locus.loop.budget import Budget, agent_condition, child_loop, condition_given, tightened
from locus.loop.context import ActiveRun
from locus.loop.input import Prompt, Turn, system_message, thread_name
from locus.loop.router import Router
from locus.loop.runtime import Loop
from locus.loop.segment import drive
from locus.loop.thread import Ended, Segment, ended_before
from locus.models.output import OutputError
from locus.models.protocol import ModelSettings
from locus.plugins.report import run_report
from locus.result import AgentResult
from locus.run import Run, Sink, left

if TYPE_CHECKING:
    from locus.config import Config
    from locus.core.termination import TerminationCondition
    from locus.journal.store import JournalStore
    from locus.memory.conversation import ConversationManager
    from locus.models.protocol import Model
    from locus.plugins.discovery import Catalogue
    from locus.plugins.manifest import Plugin

__all__ = ["Engine", "How", "build"]


@frozen(kw_only=True)
class How:
    """What one call of ``run`` or ``resume`` says beside its prompt.

    Args:
        deps: what tools get as ``ctx.deps``.
        settings: over those of the agent.
        output_schema: in place of the agent's.
        termination: another reason to stop.
    """

    deps: Any = None
    settings: ModelSettings | None = None
    output_schema: Any = None
    termination: TerminationCondition | None = None


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


class Engine:
    """An agent put together; immutable but for the set of its active runs.

    Args:
        parts: what it is made of.
        condition: when its runs stop.
        sequential: whether the calls of a turn run one after another.
        max_revisions: how often reviewers may send a run's answers back.
        output: the schema of the final answer, or None.
        settings: how the model is to answer.
        manager: the conversation manager, or None.
        clock: the source of time.
        system: the system prompt, or None.
        template: the fields of a new run's state that the agent decides.
    """

    __slots__ = ("blank", "live", "loop", "store", "system", "template")

    def __init__(
        self,
        *,
        parts: Parts,
        condition: TerminationCondition,
        sequential: bool,
        max_revisions: int,
        output_schema: Any,
        settings: ModelSettings | None,
        manager: ConversationManager | None,
        clock: Clock | None,
        system: str | None,
        template: Mapping[str, Any],
    ) -> None:
        self.loop = Loop.wire(
            model=parts.model,
            tools=parts.tools,
            router=Router(condition, parts.reflect),
            hooks=parts.hooks.table,
            plugins=parts.hooks.reports,
            versions=FrozenDict(run_report(parts.hooks.reports).versions),
            manager=manager,
            settings=settings or ModelSettings(),
            output=schema_of(output_schema),
            max_revisions=max_revisions,
            sequential=sequential,
            resolve=parts.resolve,
            clock=clock or SystemClock(),
        )
        self.store = parts.store
        self.system = system_message(system)
        iterations = condition.bounds().iterations
        self.template = FrozenDict({**template, "max_iterations": iterations if iterations is not None else 0})
        self.blank = _blank(self.template)
        self.live = _Live()

    # -- starting ---------------------------------------------------------------------------------

    def run(self, prompt: Prompt, thread_id: str | None, metadata: Mapping[str, Any] | None, how: How) -> Run[Any]:
        """A run on a prompt.

        Raises:
            InputError: the prompt or the metadata cannot be used.
            ConfigError: the model settings cannot be used.
        """
        refuse_odd_run(how, metadata)
        return self._run(self._segment(thread_name(thread_id), prompt, metadata), how, None)

    def _segment(self, thread_id: str, prompt: Prompt, metadata: Mapping[str, Any] | None = None) -> Segment:
        turn = Turn.of(prompt)
        return Segment(
            thread_id=thread_id,
            worker=_worker(),
            before=turn.before,
            prompt=turn.message,
            seed=turn.seed,
            system=self.system,
            metadata=FrozenDict(metadata or {}),
            template=self.template,
            blank=self.blank,
        )

    def _resuming(self, thread_id: str, answer: Any, max_attempts: int | None) -> Segment:
        return Segment(
            thread_id=thread_id,
            worker=_worker(),
            answer=answer,
            max_attempts=max_attempts,
            system=self.system,
            template=self.template,
            blank=self.blank,
        )

    def resume(
        self, thread: str | AgentResult[Any], answer: Any, how: How, max_attempts: int | None = None
    ) -> Run[Any]:
        """A run that goes on with an open one.

        Raises:
            ConfigError: nothing is kept under a thread id, or the number of attempts is none.
        """
        refuse_odd_run(how)
        if max_attempts is not None and (type(max_attempts) is not int or max_attempts < 1):
            raise ConfigError(f"max_attempts is {max_attempts!r}; it is an integer, 1 or more, or None for no limit")
        store, thread_id = None, thread
        if isinstance(thread, AgentResult):
            store, thread_id = thread.store, thread.thread_id
        if store is None and self.store is None:
            raise ConfigError(
                "this agent has no checkpointer, so nothing is kept under a thread id; resume with the AgentResult, "
                "or build the agent with checkpointer="
            )
        segment = self._resuming(str(thread_id), answer, max_attempts)
        return self._run(segment, how, store)

    def _run(self, segment: Segment, how: How, store: JournalStore | None) -> Run[Any]:
        loop = self.loop if how.termination is None else tightened(self.loop, condition_given(how.termination))
        schema = None if how.output_schema is None else schema_of(how.output_schema)
        active = ActiveRun(loop, segment.thread_id, deps=how.deps, settings=how.settings, output=schema)
        return Run(partial(self._main, active, segment, store), active.cancel, segment.thread_id)

    async def _main(
        self, active: ActiveRun, segment: Segment, store: JournalStore | None, sink: Sink | None
    ) -> AgentResult[Any]:
        kept = store if store is not None else self.store
        own = kept if kept is not None else MemoryStore(history=False)
        if sink is not None:
            active.show_to(sink)
        await left(segment.thread_id)
        ended = await self._driven(active, own, segment)
        return _result(active, ended, own if self.store is None else None)

    async def _driven(self, active: ActiveRun, store: JournalStore, segment: Segment) -> Ended:
        self.live.add(active)
        try:
            return await drive(active, store, segment)
        finally:
            self.live.discard(active)

    async def child(
        self,
        prompt: Prompt,
        *,
        thread_id: str,
        parent: ActiveRun,
        budget: Budget | None,
        answers: dict[str, Any] | None,
    ) -> AgentResult[Any]:
        """Run as a part of another agent's run."""
        store = self.store if self.store is not None else parent.host.store
        loop = child_loop(self.loop, budget or Budget(), parent)
        segment = evolve(self._segment(thread_id, prompt), answer=answers, one_run=True)
        while True:
            active = ActiveRun(loop, thread_id, deps=parent.deps, parent=parent)
            before = await JournalHost.seen(store, thread_id)
            if before is not None:
                # The child's own journal remembers it: a finished child is not run again, an asking one still asks.
                active.host = before
                ended = ended_before(before, answered=answers is not None)
                if ended is not None:
                    return _result(active, ended, None)
            try:
                return _result(active, await self._driven(active, store, segment), None)
            except NothingToResume:
                # A worker that was overtaken, and had not noticed, has ended it since: its journal tells.
                continue

    def kept(self) -> JournalStore:
        """Where threads are kept.

        Raises:
            ConfigError: the agent has no checkpointer.
        """
        if self.store is None:
            raise ConfigError(
                "this agent has no checkpointer, so nothing is kept under a thread id; build it with checkpointer="
            )
        return self.store

    def cancel(self, reason: str, run_id: str | None, thread_id: str | None) -> int:
        """Tell active runs to end; gives how many were told."""
        told = 0
        for run in self.live.all():
            if (run_id is None or run.run_id == run_id) and (thread_id is None or run.thread_id == thread_id):
                run.cancel(reason)
                told += 1
        return told


def build(
    *,
    model: str | Model | None,
    tools: Iterable[object],
    system_prompt: str | None,
    name: str | None,
    termination: TerminationCondition | None,
    max_iterations: int | None,
    stop_on_text: bool,
    terminal_tools: Iterable[str],
    token_budget: int | None,
    confidence_threshold: float,
    tool_loop_threshold: int,
    tool_execution: str,
    max_revisions: int,
    output_schema: Any,
    model_settings: ModelSettings | None,
    conversation_manager: ConversationManager | None,
    checkpointer: JournalStore | str | os.PathLike[str] | None,
    hooks: Sequence[object],
    plugins: Sequence[str | Plugin],
    config: Config | None,
    catalogue: Catalogue | None,
    clock: Clock | None,
    options: Mapping[str, Any],
    own_options: Iterable[str],
) -> Engine:
    """Put an agent together; the arguments are those of `Agent`.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        PluginError: a plugin that was asked for cannot be used.
    """
    refuse_odd_agent(
        tool_execution=tool_execution,
        max_revisions=max_revisions,
        terminal_tools=terminal_tools,
        confidence_threshold=confidence_threshold,
        system_prompt=system_prompt,
        name=name,
        plugins=plugins,
        hooks=hooks,
        model_settings=model_settings,
        conversation_manager=conversation_manager,
        config=config,
    )
    parts = assemble(
        model=model,
        tools=tools,
        checkpointer=checkpointer,
        hooks=hooks,
        plugins=plugins,
        config=config,
        catalogue=catalogue,
        options=options,
        own_options=own_options,
    )
    terminals = frozenset(terminal_tools)
    condition = agent_condition(
        termination,
        max_iterations=max_iterations,
        terminal_tools=terminals,
        token_budget=token_budget,
        stop_on_text=stop_on_text,
        model=parts.model,
        prices=parts.hooks.table.prices,
        configured=configured(config),
    )
    return Engine(
        parts=parts,
        condition=condition,
        sequential=tool_execution == "sequential",
        max_revisions=max_revisions,
        output_schema=output_schema,
        settings=model_settings,
        manager=conversation_manager,
        clock=clock,
        system=system_prompt if system_prompt is not None else configured(config).get("system_prompt"),
        template={
            "agent_id": name,
            "confidence_threshold": confidence_threshold,
            "tool_loop_threshold": tool_loop_threshold,
            "terminal_tools": terminals,
            "token_budget": token_budget,
        },
    )


def _blank(template: Mapping[str, Any]) -> AgentState:
    """What each new run starts from; what is out of range is refused here and not in the first run."""
    try:
        return AgentState(**template)
    except ValueError as e:
        raise ConfigError(str(e)) from e


def _worker() -> str:
    return f"pid {os.getpid()}"


def _result(active: ActiveRun, ended: Ended, store: JournalStore | None) -> AgentResult[Any]:
    state = ended.state
    last = state.last_assistant
    text = last.text if last is not None and not ended.questions else ""
    parsed = None
    if active.output is not None and text:
        try:
            parsed = active.output.parse(text)
        except OutputError as e:
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
