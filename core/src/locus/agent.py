"""`Agent`: configuration in, `Run` out.

An agent is immutable: one object serves any number of concurrent runs. What it needs is resolved when it is built, so
a wrong name fails there and not in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from locus.core.lazy import Lazy

if TYPE_CHECKING:
    import os

    import anyio

    from locus import travel
    from locus.config import Config
    from locus.core.state import AgentState
    from locus.core.termination import TerminationCondition
    from locus.journal.clock import Clock
    from locus.journal.store import JournalStore
    from locus.loop import engine
    from locus.loop.budget import Budget
    from locus.loop.context import ActiveRun
    from locus.loop.input import Prompt
    from locus.loop.runtime import Loop
    from locus.memory.conversation import ConversationManager
    from locus.models.output import OutputSchema
    from locus.models.protocol import Model, ModelSettings
    from locus.plugins.discovery import Catalogue
    from locus.plugins.manifest import Plugin
    from locus.result import AgentResult
    from locus.run import Run
    from locus.travel import Diff, History, Replay, RouterLike, WhatIf, replays
else:
    anyio = Lazy("anyio")
    engine = Lazy("locus.loop.engine")
    travel = Lazy("locus.travel")
    replays = Lazy("locus.travel.replays")

__all__ = ["Agent"]

if TYPE_CHECKING:
    # With defaults, ``Agent(...)`` needs no annotation; Python 3.13 has them at run time too.
    from typing_extensions import TypeVar as DefaultTypeVar

    Deps = DefaultTypeVar("Deps", default=Any)
    Out = DefaultTypeVar("Out", default=Any)
else:
    Deps = TypeVar("Deps")
    Out = TypeVar("Out")
Given = TypeVar("Given")


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
        checkpointer: where journals are kept: a `JournalStore`, ``"scheme:rest"`` of a plugin, or a path whose suffix
            an installed plugin takes. Without one a journal lives as long as its `AgentResult`.
        hooks: `Hook` objects, or objects with `hookimpl` methods.
        plugins: names of installed plugins, or manifests.
        config: settings read by `locus.config.load_config`; the library reads no file by itself.
        catalogue: the plugins to choose from, in place of the installed ones; for tests.
        clock: the source of time, for tests.
        options: a plugin's name (``True``, or its settings as a dict or object), or a keyword that a plugin's
            manifest declares.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        PluginError: a plugin that was asked for cannot be used.
    """

    __slots__ = ("__weakref__", "_engine")

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
        checkpointer: JournalStore | str | os.PathLike[str] | None = None,
        hooks: Sequence[object] = (),
        plugins: Sequence[str | Plugin] = (),
        config: Config | None = None,
        catalogue: Catalogue | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        self._engine = engine.build(
            model=model,
            tools=tools,
            system_prompt=system_prompt,
            name=name,
            termination=termination,
            max_iterations=max_iterations,
            stop_on_text=stop_on_text,
            terminal_tools=terminal_tools,
            token_budget=token_budget,
            confidence_threshold=confidence_threshold,
            tool_loop_threshold=tool_loop_threshold,
            tool_execution=tool_execution,
            max_revisions=max_revisions,
            output_schema=output_schema,
            model_settings=model_settings,
            conversation_manager=conversation_manager,
            checkpointer=checkpointer,
            hooks=hooks,
            plugins=plugins,
            config=config,
            catalogue=catalogue,
            clock=clock,
            options=options,
            own_options=_OPTIONS,
        )

    if not TYPE_CHECKING:  # a type checker refuses the assignment by itself

        def __setattr__(self, name: str, value: object) -> None:
            if hasattr(self, "_engine"):
                raise AttributeError(f"an Agent is immutable; build another one with another {name}")
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<Agent {self.name or self.loop.model.name} tools={len(self.loop.tools)}>"

    # -- what it is -------------------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """Its stable name."""
        name: str | None = self._engine.template["agent_id"]
        return name

    @property
    def condition(self) -> TerminationCondition:
        """The condition that the agent really runs with; see its ``explain`` and ``bounds``."""
        return self.loop.router.condition

    @property
    def loop(self) -> Loop:
        """The wiring: model, tools, hooks, router."""
        return self._engine.loop

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
        how = engine.How(deps=deps, settings=model_settings, output_schema=output_schema, termination=termination)
        return self._engine.run(prompt, thread_id, metadata, how)

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
        max_attempts: int | None = ...,
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
        max_attempts: int | None = ...,
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
        max_attempts: int | None = None,
    ) -> Run[Any]:
        """Go on with a run that a crash, a cancellation or a question left open.

        Args:
            thread: its thread id, or the `AgentResult` of the interrupted run.
            answer: the answer to the open question, a mapping too; ``{interrupt_id: answer}`` when several are
                open; None after a crash.
            deps: again, because they are never saved.
            model_settings: as for `run`.
            output_schema: as for `run`.
            termination: as for `run`.
            max_attempts: for those who resume by themselves what they find open, 1 or more; 5 is a good number: after
                so many attempts that died in one place the run is set aside. None = go on in any case.

        Raises, from the run:
            NothingToResume: no run is open on the thread.
            InterruptMismatch: the answer fits no open question.
            DeadLetter: ``max_attempts`` were made; the cause is in the journal, and no worker is offered the thread.
        """
        how = engine.How(deps=deps, settings=model_settings, output_schema=output_schema, termination=termination)
        return self._engine.resume(thread, answer, how, max_attempts)

    @overload
    def run_sync(
        self,
        prompt: Prompt,
        *,
        thread_id: str | None = ...,
        deps: Deps | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        model_settings: ModelSettings | None = ...,
        output_schema: None = ...,
        termination: TerminationCondition | None = ...,
    ) -> AgentResult[Out]: ...
    @overload
    def run_sync(
        self,
        prompt: Prompt,
        *,
        thread_id: str | None = ...,
        deps: Deps | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        model_settings: ModelSettings | None = ...,
        output_schema: type[Given],
        termination: TerminationCondition | None = ...,
    ) -> AgentResult[Given]: ...
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
        if _in_event_loop():
            raise RuntimeError(
                "run_sync blocks its thread, and an event loop runs in this one; write `await agent.run(...)` here"
            )
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
        return self._engine.cancel(reason, run_id, thread_id)

    # -- what its store remembers -----------------------------------------------------------------

    async def history(self, thread_id: str) -> History:
        """What happened on a thread: a `Moment` for each transition.

        Raises:
            ConfigError: the agent has no checkpointer.
            NothingToResume: nothing is kept under that id.
            JournalError: the checkpointer keeps no history.
        """
        return await travel.history(self._engine.kept(), thread_id)

    async def state_at(self, thread_id: str, n: int) -> AgentState:
        """The state that a thread's n-th transition committed.

        Raises:
            JournalError: there is no such transition; otherwise as for `history`.
        """
        return await travel.state_at(self._engine.kept(), thread_id, n)

    async def fork(self, thread_id: str, *, at: int | None = None, into: str | None = None) -> str:
        """Make another thread that begins like this one, up to a transition; gives its id.

        `resume` goes on with it where the run was open there, and ``run(prompt, thread_id=...)`` takes the next turn.
        A run that is open at that point is another run in the fork, with an id and idempotency keys of its own.

        Args:
            thread_id: the thread.
            at: the number of the last transition that both have, as in `history`; None = the newest.
            into: the new thread's id; None = one made of the old.

        Raises:
            JournalError: there is no such transition, or ``into`` is taken; otherwise as for `history`.
        """
        return await travel.fork(self._engine.kept(), thread_id, at, into)

    async def replay(
        self,
        thread_id: str,
        *,
        deps: Deps | None = None,
        model_settings: ModelSettings | None = None,
        output_schema: Any = None,
        termination: TerminationCondition | None = None,
    ) -> Replay:
        """Run this agent's code against a thread's journal; no model is called and no tool's body entered.

        Nodes, router, conversation manager and the binding of arguments run as ever; observers, deciders, reviewers
        and the wrappers of calls do not, because what they decided is in the journal.

        Args:
            thread_id: the thread; nothing is written to it.
            deps: what plugins' nodes get as ``run.deps``.
            model_settings: what its runs were called with.
            output_schema: what its runs were called with.
            termination: what its runs were called with, where that has no JSON form and so is not in the journal.

        Raises:
            ConfigError, NothingToResume, JournalError: as for `history`. A difference is no exception.
        """
        how = engine.How(deps=deps, settings=model_settings, output_schema=output_schema, termination=termination)
        return await replays.replay(self._engine, self._engine.kept(), thread_id, how)

    async def what_if(
        self,
        thread_id: str,
        *,
        termination: TerminationCondition | None = None,
        router: RouterLike | None = None,
        run_id: str | None = None,
    ) -> WhatIf:
        """Where a run would have stopped under another rule, from its journal alone.

        With neither a condition nor a router the agent's own are asked.

        Args:
            thread_id: the thread.
            termination: another condition in place of the agent's; terminal tools and an answer without tool calls
                end the run as they do in this agent.
            router: another router, or any pure function ``(node, state) -> Route``.
            run_id: which of the thread's runs; None = the last one.

        Raises:
            ConfigError: both are given, or one that is none; otherwise as for `history`.
        """
        rule = self.loop.router if termination is None and router is None else router
        return await travel.what_if(
            self._engine.kept(), thread_id, termination=termination, router=rule, run_id=run_id, loop=self.loop
        )

    async def diff(self, thread_a: str, thread_b: str) -> Diff:
        """Two threads side by side, and where they part.

        Raises:
            ConfigError, NothingToResume, JournalError: as for `history`.
        """
        store = self._engine.kept()
        return travel.diff(await travel.history(store, thread_a), await travel.history(store, thread_b))

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
        return await self._engine.child(prompt, thread_id=thread_id, parent=parent, budget=budget, answers=answers)


def _in_event_loop() -> bool:
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:  # there is none: nothing says how a task of it is cancelled
        return False
    return True


_OPTIONS = tuple(n for n in Agent.__init__.__annotations__ if n not in ("return", "options"))
