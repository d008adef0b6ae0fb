"""An agent as a step: no handler is written for it.

Its conversation is a thread of its own, ``<run>/<step>/agent``, so nothing of it is a checkpoint: a worker that takes
the step over goes on where the journal of the agent ends. The bounds of the step are or-ed with the agent's own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

from attrs import define, field, frozen

from locus import Agent, AgentResult, Run
from locus.core import encode_data, freeze
from locus.core.errors import ConfigError, NothingToResume, RunFailed
from locus.core.events import CheckpointEvent, Event
from locus.core.journal import START
from locus.core.termination import MaxIterations, TerminationCondition, TimeLimit
from locus_plugin_workflow.context import TaskContext
from locus_plugin_workflow.sleeping import Suspended
from locus_plugin_workflow.verdicts import Verdict

__all__ = ["AgentStep", "agent_thread", "handler_of"]

#: The stop reason of a run that makes room for others.
YIELDED = "Yielded"

#: Seconds after which an agent that waits for a person's answer is looked at again.
_ASK_AGAIN = 5.0

#: The node that an iteration begins with.
THINK = "think"


def agent_thread(run_id: str, step: str) -> str:
    """The thread of the agent that runs a step."""
    return f"{run_id}/{step}/agent"


def handler_of(handler: Any) -> Callable[[Any], Any]:
    """A handler, or the one that runs an agent.

    Raises:
        ConfigError: the agent keeps no threads.
    """
    if not isinstance(handler, Agent):
        found: Callable[[Any], Any] = handler
        return found
    agent = handler
    if agent.runtime.store is None:
        raise ConfigError(
            f"agent {agent.name!r} has no checkpointer, so another worker could not go on with its run; "
            "build it with checkpointer=, best the store of the workflow"
        )

    return AgentStep(agent)


@frozen
class AgentStep:
    """The handler that runs an agent."""

    agent: Agent[Any, Any]

    async def __call__(self, ctx: TaskContext) -> Verdict:
        """Run the agent to its end, or for one iteration, or go on with it."""
        return await _run(self.agent, ctx)


async def _run(agent: Agent[Any, Any], ctx: TaskContext) -> Verdict:
    config = ctx.definition.config
    bound: TerminationCondition | None = None
    if config is not None:
        bound = MaxIterations(config.max_iterations)
        bound = bound | TimeLimit(config.max_duration) if config.max_duration else bound
    if config is not None and ctx.definition.dispatch == "iteration":
        went = await _run_iteration(agent, ctx, bound)
        if went is None:
            return ctx.continue_(ctx.input())
        result = went
    else:
        result = await _begin(agent, ctx, bound)
    if result.interrupts:
        raise Suspended(ctx.now + timedelta(seconds=_ASK_AGAIN))
    if result.stop_reason == YIELDED:
        if result.not_before is not None:
            raise Suspended(result.not_before)
        return ctx.continue_(ctx.input())
    if config is not None and result.stop_reason == "MaxIterations" and result.state.iteration >= config.max_iterations:
        return ctx.fail_permanent(f"the agent did not end in {config.max_iterations} iterations")
    try:
        result.raise_for_failure()
    except RunFailed as e:
        return ctx.fail(e)
    return ctx.complete(result.parsed if result.parsed is not None else result.text)


def _begin(agent: Agent[Any, Any], ctx: TaskContext, bound: TerminationCondition | None) -> Run[Any]:
    """The run of the step: begun, gone on with where it was left open, or its result where it has ended."""
    return agent.run(
        _prompt(ctx.input()),
        thread_id=agent_thread(ctx.run_id, ctx.payload.step),
        request_id=ctx.run_id,
        termination=bound,
    )


@define(eq=False)
class _OpenRun:
    """A run that waits behind each of its iterations, with its thread claimed, until it is asked for the next.

    It is iterated, so it waits at each event. Behind the event that ends an iteration everything of it is stored.

    Args:
        agent: whose it is.
        run: the run, not begun.
        thread_id: its thread.
    """

    agent: Agent[Any, Any]
    run: Run[Any]
    thread_id: str
    _events: AsyncIterator[Event] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._events = aiter(self.run.only(CheckpointEvent))

    async def advance(self) -> AgentResult[Any] | None:
        """Run to the end of an iteration: None, or to the end of the run: its result."""
        async for event in self._events:
            if isinstance(event, CheckpointEvent) and _ends_iteration(event):
                return None
        return self.run.result

    async def leave(self) -> AgentResult[Any]:
        """Let the run yield, right where it waits."""
        self.agent.drain(thread_id=self.thread_id)
        while (result := await self.advance()) is None:
            pass
        return result

    async def abandon(self) -> None:
        """Cancel the run; it is left open."""
        await self.run.aclose()


def _ends_iteration(event: CheckpointEvent) -> bool:
    return event.parent_run_id is None and event.next_node == THINK and event.node != START


async def _run_iteration(
    agent: Agent[Any, Any], ctx: TaskContext, bound: TerminationCondition | None
) -> AgentResult[Any] | None:
    """One iteration of the agent; None where its run waits for the next, which this worker may ask for."""
    thread_id, stay = agent_thread(ctx.run_id, ctx.payload.step), ctx.stay
    waiting, stay.waiting = stay.waiting, None
    if isinstance(waiting, _OpenRun):
        opened = waiting
    elif not ctx.payload.iteration and await agent.threads.store.peek(thread_id) is None:
        opened = _OpenRun(agent, _begin(agent, ctx, bound), thread_id)
    else:
        opened = _OpenRun(agent, agent.resume(thread_id, termination=bound), thread_id)
    try:
        ended = await opened.advance()
    except NothingToResume:
        return await _begin(agent, ctx, bound)
    if ended is not None:
        return ended
    if stay.is_over:
        return await opened.leave()
    stay.waiting = opened
    return None


def _prompt(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(encode_data(freeze(given)), ensure_ascii=False)
