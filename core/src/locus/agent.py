"""`Agent`: configuration in, `Run` out.

An agent is immutable: one object serves any number of concurrent runs. What it needs is resolved when it is built, so
a wrong name fails there and not in the middle of a run. Its keywords are declared in `locus.options`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from locus.core.lazy import Lazy
from locus.options import AgentKeywords, Deps, Out, RunOptions

if TYPE_CHECKING:
    from typing import Unpack

    import anyio

    from locus import travel
    from locus.core.state import AgentState
    from locus.core.termination import TerminationCondition
    from locus.loop import builder
    from locus.loop.budget import Budget
    from locus.loop.context import ActiveRun
    from locus.loop.input import Prompt
    from locus.loop.runtime import AgentRuntime
    from locus.models.protocol import ModelSettings
    from locus.options import AgentOptions, ResumeKeywords, RunKeywords
    from locus.result import AgentResult
    from locus.run import Run
    from locus.travel import Diff, History, Replay, RouterLike, WhatIf, replays
else:
    anyio = Lazy("anyio")
    builder = Lazy("locus.loop.builder")
    travel = Lazy("locus.travel")
    replays = Lazy("locus.travel.replays")

__all__ = ["Agent"]

Given = TypeVar("Given")


class Agent(AgentKeywords[Deps, Out]):
    """An agent: a model, its tools, and when to stop.

    See ``help(Agent.__init__)`` for its keywords; keywords that are not listed there are those of plugins.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        PluginError: a plugin that was asked for cannot be used.
    """

    __slots__ = ("__weakref__", "_runtime")

    def _build(self, options: AgentOptions) -> None:
        self._runtime = builder.build_runtime(options)

    if not TYPE_CHECKING:  # a type checker refuses the assignment by itself

        def __setattr__(self, name: str, value: object) -> None:
            if hasattr(self, "_runtime"):
                raise AttributeError(f"an Agent is immutable; build another one with another {name}")
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<Agent {self.name or self._runtime.model.name} tools={len(self._runtime.tools)}>"

    # -- what it is -------------------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """Its stable name."""
        return self._runtime.blank.agent_id

    @property
    def condition(self) -> TerminationCondition:
        """The condition that the agent really runs with; see its ``explain`` and ``bounds``."""
        return self._runtime.router.condition

    @property
    def runtime(self) -> AgentRuntime:
        """What it runs on: model, tools, hooks, router, store."""
        return self._runtime

    # -- running ----------------------------------------------------------------------------------

    @overload
    def run(self, prompt: Prompt, *, output_schema: None = ..., **options: Unpack[RunKeywords[Deps]]) -> Run[Out]: ...
    @overload
    def run(
        self, prompt: Prompt, *, output_schema: type[Given], **options: Unpack[RunKeywords[Deps]]
    ) -> Run[Given]: ...
    def run(self, prompt: Prompt, *, output_schema: Any = None, **options: Unpack[RunKeywords[Deps]]) -> Run[Any]:
        """A run, to be awaited, iterated or entered.

        Args:
            prompt: text, content blocks, messages, or an `AgentState` to start from.
            output_schema: the type of the answer, in place of the agent's.
            options: ``thread_id``: the conversation to continue, or to begin under that name.
                ``deps``: what tools get as ``ctx.deps``; never saved.
                ``metadata``: entries for ``state.metadata``.
                ``model_settings``: over those of the agent.
                ``termination``: another reason to stop, or-ed with the agent's condition.

        Raises:
            InputError: the prompt, the thread's name or the metadata cannot be used.
            ConfigError: another option cannot be used.
        """
        return self._runtime.run(prompt, RunOptions(output_schema=output_schema, **options))

    @overload
    def resume(
        self,
        thread: str | AgentResult[Any],
        answer: Any = ...,
        *,
        output_schema: None = ...,
        **options: Unpack[ResumeKeywords[Deps]],
    ) -> Run[Out]: ...
    @overload
    def resume(
        self,
        thread: str | AgentResult[Any],
        answer: Any = ...,
        *,
        output_schema: type[Given],
        **options: Unpack[ResumeKeywords[Deps]],
    ) -> Run[Given]: ...
    def resume(
        self,
        thread: str | AgentResult[Any],
        answer: Any = None,
        *,
        output_schema: Any = None,
        **options: Unpack[ResumeKeywords[Deps]],
    ) -> Run[Any]:
        """Go on with a run that a crash, a cancellation or a question left open.

        Args:
            thread: its thread id, or the `AgentResult` of the interrupted run.
            answer: the answer to the open question, a mapping too; ``{interrupt_id: answer}`` when several are
                open; None after a crash.
            output_schema: as for `run`.
            options: ``deps``: again, because they are never saved.
                ``model_settings``, ``termination``: as for `run`.
                ``max_attempts``: for programs that resume by themselves what they find open, 1 or more; 5 is a good
                number: after so many attempts that died in one place the run is set aside. None = go on in any case.

        Raises, from the run:
            NothingToResume: no run is open on the thread.
            InterruptMismatch: the answer fits no open question.
            DeadLetter: ``max_attempts`` were made; the cause is in the journal, and no worker is offered the thread.
        """
        return self._runtime.resume(thread, answer, RunOptions(output_schema=output_schema, **options))

    @overload
    def run_sync(
        self, prompt: Prompt, *, output_schema: None = ..., **options: Unpack[RunKeywords[Deps]]
    ) -> AgentResult[Out]: ...
    @overload
    def run_sync(
        self, prompt: Prompt, *, output_schema: type[Given], **options: Unpack[RunKeywords[Deps]]
    ) -> AgentResult[Given]: ...
    def run_sync(
        self, prompt: Prompt, *, output_schema: Any = None, **options: Unpack[RunKeywords[Deps]]
    ) -> AgentResult[Any]:
        """`run` for callers without an event loop.

        Raises:
            RuntimeError: an event loop runs in this thread; use ``await agent.run(...)`` there.
        """
        if _in_event_loop():
            raise RuntimeError(
                "run_sync blocks its thread, and an event loop runs in this one; write `await agent.run(...)` here"
            )
        run: Run[Any] = self.run(prompt, output_schema=output_schema, **options)

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
        return self._runtime.cancel(reason, run_id, thread_id)

    # -- what its store remembers -----------------------------------------------------------------

    async def history(self, thread_id: str) -> History:
        """What happened on a thread: a `Moment` for each transition.

        Raises:
            ConfigError: the agent has no checkpointer.
            NothingToResume: nothing is kept under that id.
            JournalError: the checkpointer keeps no history.
        """
        return await travel.history(self._runtime.required_store(), thread_id)

    async def state_at(self, thread_id: str, n: int) -> AgentState:
        """The state that a thread's n-th transition committed.

        Raises:
            JournalError: there is no such transition; otherwise as for `history`.
        """
        return await travel.state_at(self._runtime.required_store(), thread_id, n)

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
        return await travel.fork(self._runtime.required_store(), thread_id, at, into)

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
        options = RunOptions(
            deps=deps, model_settings=model_settings, output_schema=output_schema, termination=termination
        )
        return await replays.replay(self._runtime, self._runtime.required_store(), thread_id, options)

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
        rule = self._runtime.router if termination is None and router is None else router
        return await travel.what_if(
            self._runtime.required_store(),
            thread_id,
            termination=termination,
            router=rule,
            run_id=run_id,
            runtime=self._runtime,
        )

    async def diff(self, thread_a: str, thread_b: str) -> Diff:
        """Two threads side by side, and where they part.

        Raises:
            ConfigError, NothingToResume, JournalError: as for `history`.
        """
        store = self._runtime.required_store()
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
        return await self._runtime.child(prompt, thread_id=thread_id, parent=parent, budget=budget, answers=answers)


def _in_event_loop() -> bool:
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:  # there is none: nothing says how a task of it is cancelled
        return False
    return True
