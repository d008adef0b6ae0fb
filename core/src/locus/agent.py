"""`Agent`: configuration in, `Run` out.

An agent is immutable: one object serves any number of concurrent runs. What it needs is resolved when it is built, so
a wrong name fails there and not in the middle of a run. Its keywords are declared in `locus.options`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from attrs import evolve

from locus.core.lazy import Lazy
from locus.options import AgentKeywords, Deps, Out, RunOptions, SubmitOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Unpack

    import anyio

    from locus import threads as thread_views
    from locus.core.events import Event
    from locus.core.labels import Label
    from locus.core.termination import TerminationCondition
    from locus.journal.effects import Clock, Effects
    from locus.journal.store import JournalStore
    from locus.loop import builder
    from locus.loop.context import SegmentContext
    from locus.loop.input import Prompt
    from locus.loop.runtime import AgentRuntime
    from locus.models.protocol import Model
    from locus.options import AgentOptions, ResumeKeywords, RunKeywords, SubmitKeywords
    from locus.result import AgentResult
    from locus.run import Run
    from locus.threads import Threads
    from locus.tools.account import Account, Budget

    #: A thread's id, or how its last run ended.
    Thread = str | AgentResult[Any]
else:
    anyio = Lazy("anyio")
    builder = Lazy("locus.loop.builder")
    thread_views = Lazy("locus.threads")

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
    def version(self) -> str | None:
        """Its version, as it was given."""
        return self._runtime.version or None

    @property
    def condition(self) -> TerminationCondition:
        """The condition that the agent really runs with; see its ``explain`` and ``bounds``."""
        return self._runtime.router.condition

    @property
    def runtime(self) -> AgentRuntime:
        """What it runs on: model, tools, hooks, router, store."""
        return self._runtime

    def with_checkpointer(self, store: JournalStore) -> Agent[Deps, Out]:
        """The same agent, which keeps its threads in another store; for a worker, whose store is named elsewhere."""
        return self._evolve(store=store)

    def with_listener(
        self, name: str, hear: Callable[[Event], None], *, hears_chunks: bool = False
    ) -> Agent[Deps, Out]:
        """The same agent, whose events a function hears as well; for a worker that measures what it runs.

        Args:
            name: what it is called in a `HookFailedEvent`; if it raises, the run goes on.
            hear: is called with every event but the chunks of answers, and with those of child runs.
            hears_chunks: call it with the chunks as well.
        """
        return self._evolve(hooks=self._runtime.hooks.with_listener(name, hear, hears_chunks=hears_chunks))

    def with_effects(self, effects: Effects, *, clock: Clock, model: Model) -> Agent[Deps, Out]:
        """The same agent on an engine, without a store; for code that runs it there.

        Args:
            effects: where its model calls and tools take place.
            clock: the engine's time.
            model: what the loop sees of the model, whose calls the engine makes.
        """
        return self._evolve(effects=effects, clock=clock, model=model, store=None, active=set())

    def _evolve(self, **changes: Any) -> Agent[Deps, Out]:
        made: Agent[Deps, Out] = object.__new__(type(self))
        object.__setattr__(made, "_runtime", evolve(self._runtime, **changes))
        return made

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
                ``request_id``: your name for this turn of the thread. Called with it again, an ended turn is not run
                again, its result is returned; one that waits for an answer returns its interrupted result; one that
                was left open goes on. Neither the prompt nor the metadata of the second call is used.
                ``deps``: what tools get as ``ctx.deps``; never saved.
                ``metadata``: entries for ``state.metadata``.
                ``model_settings``: over those of the agent.
                ``termination``: another reason to stop, or-ed with the agent's condition.

        Raises:
            InputError: the prompt, the thread's name or the metadata cannot be used.
            ConfigError: another option cannot be used, or a request id is given without a thread that is kept.

        Raises, from the run:
            ThreadBusy: another run holds the thread, maybe of the same request.
            RequestSuperseded: the request was an earlier turn of the thread.
        """
        return self._runtime.run(prompt, RunOptions(output_schema=output_schema, **options))

    @overload
    def resume(
        self, thread: Thread, answer: Any = ..., *, output_schema: None = ..., **options: Unpack[ResumeKeywords[Deps]]
    ) -> Run[Out]: ...
    @overload
    def resume(
        self, thread: Thread, answer: Any = ..., *, output_schema: type[Given], **options: Unpack[ResumeKeywords[Deps]]
    ) -> Run[Given]: ...
    def resume(
        self, thread: Thread, answer: Any = None, *, output_schema: Any = None, **options: Unpack[ResumeKeywords[Deps]]
    ) -> Run[Any]:
        """Go on with a run that a crash, a cancellation or a question left open, or begin one that was submitted.

        What was signalled to the thread is done: a cancel, an answer; and where no run is open, the next turn.

        Args:
            thread: its thread id, or the `AgentResult` of the interrupted run.
            answer: the answer to the open question, a mapping too; ``{interrupt_id: answer}`` when several are
                open; None after a crash.
            output_schema: as for `run`.
            options: ``deps``: again, because they are never saved.
                ``model_settings``, ``termination``: as for `run`.
                ``yield_after``: after so many iterations the run is left open, with the stop reason ``"Yielded"``.
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
        _refuse_event_loop("run")
        return _finish(self.run(prompt, output_schema=output_schema, **options))

    @overload
    def resume_sync(
        self, thread: Thread, answer: Any = ..., *, output_schema: None = ..., **options: Unpack[ResumeKeywords[Deps]]
    ) -> AgentResult[Out]: ...
    @overload
    def resume_sync(
        self, thread: Thread, answer: Any = ..., *, output_schema: type[Given], **options: Unpack[ResumeKeywords[Deps]]
    ) -> AgentResult[Given]: ...
    def resume_sync(
        self, thread: Thread, answer: Any = None, *, output_schema: Any = None, **options: Unpack[ResumeKeywords[Deps]]
    ) -> AgentResult[Any]:
        """`resume` for callers without an event loop.

        Raises:
            RuntimeError: an event loop runs in this thread; use ``await agent.resume(...)`` there.
        """
        _refuse_event_loop("resume")
        return _finish(self.resume(thread, answer, output_schema=output_schema, **options))

    async def submit(self, prompt: Prompt, **options: Unpack[SubmitKeywords]) -> str:
        """Hand a turn in, to be run by a worker: maybe in another process, which has an agent like this one.

        A turn for a thread that is there follows what is under way on it.

        Args:
            prompt: text, content blocks or one message.
            options: ``thread_id``: the conversation to continue, or to begin under that name.
                ``request_id``: your name for this turn: submitted again with it, it is still one turn.
                ``metadata``: entries for ``state.metadata``.
                ``queue``: where it waits; None = the agent's name, or ``"default"``.
                ``priority``: 0, 1 or 2; 2 goes first.
                ``not_before``: when it may begin, with a time zone; None = at once.
                ``max_depth``: the most threads that may wait in the queue before this one; None = any number. It is
                looked at before the turn is written, so several that submit at once may go beyond it.
                ``pin``: only workers with this version of the agent run it, from the start; else any version may.
                All but the first three and ``max_depth`` count for the first turn of a thread.

        Returns:
            The thread's id.

        Raises:
            InputError: the prompt, the thread's name or the metadata cannot be used.
            ConfigError: another option cannot be used, or the agent's store hands no threads to workers.
            QueueFull: ``max_depth`` threads wait in the queue; nothing was submitted.
            StoreError: the store failed.
        """
        return await self._runtime.submit(prompt, SubmitOptions(**options))

    def drain(self, *, thread_id: str | None = None) -> int:
        """Let runs of this agent that are active now yield at their next transition: they stay open, to be resumed.

        Their results have the stop reason ``"Yielded"``. Child runs yield with none: the tool that runs one ends
        first. Safe from any thread.

        Args:
            thread_id: only the run of that thread.

        Returns:
            How many runs that is; runs that start later are not affected.
        """
        return self._runtime.drain(thread_id)

    def cancel(self, reason: str | None = "", *, run_id: str | None = None, thread_id: str | None = None) -> int:
        """End runs of this agent that are active now, at their next safe point. Safe from any thread.

        Args:
            reason: shown as ``"Cancelled: <reason>"``.
            run_id: only the run named.
            thread_id: only the runs of that thread.

        Returns:
            How many runs that is; runs that start later are not affected.
        """
        return self._runtime.cancel(reason, run_id, thread_id)

    @property
    def threads(self) -> Threads:
        """The threads that its store keeps.

        Raises:
            ConfigError: the agent has no checkpointer.
        """
        return thread_views.Threads(self._runtime.required_store(), self.resume, self.name or "")

    async def run_as_child(
        self,
        prompt: Prompt,
        *,
        thread_id: str,
        parent: SegmentContext,
        budget: Budget | None,
        account: Account | None,
        answers: dict[str, Any] | None,
        given: Label,
        without_guards: Collection[str] = (),
    ) -> AgentResult[Any]:
        """Run as a part of another agent's run; for ``ctx.run_child``."""
        return await self._runtime.child(
            prompt,
            thread_id=thread_id,
            parent=parent,
            budget=budget,
            account=account,
            answers=answers,
            without_guards=without_guards,
            given=given,
        )


def _refuse_event_loop(name: str) -> None:
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:  # no loop runs: nothing says how a task of it is cancelled
        return
    raise RuntimeError(
        f"{name}_sync blocks its thread, and an event loop runs in this one; write `await agent.{name}(...)` here"
    )


def _finish(run: Run[Any]) -> AgentResult[Any]:
    # Not what `main` returns: asyncio's runner looks at its SIGINT handler at the end, and to do so takes the `repr` of
    # the finished task, of what that returned, and so of a whole state.
    ended: list[AgentResult[Any]] = []

    async def main() -> None:
        ended.append(await run)

    anyio.run(main)
    return ended[0]
