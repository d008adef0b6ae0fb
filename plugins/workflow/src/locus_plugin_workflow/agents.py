"""An agent as a step: no handler is written for it.

Its conversation is a thread of its own, ``<run>/<step>/agent``, so nothing of it is a checkpoint: a worker that takes
the step over goes on where the journal of the agent ends. The bounds of the step are or-ed with the agent's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from locus import Agent, AgentResult, Run
from locus.core import encode_data, freeze
from locus.core.errors import ConfigError, NothingToResume, RunFailed
from locus.core.termination import MaxIterations, TerminationCondition, TimeLimit
from locus_plugin_workflow.context import TaskContext
from locus_plugin_workflow.sleeping import Suspended
from locus_plugin_workflow.verdicts import Verdict

__all__ = ["agent_thread", "handler_of"]

#: The stop reason of a run that makes room for others.
YIELDED = "Yielded"

#: Seconds after which an agent that waits for a person's answer is looked at again.
_ASK_AGAIN = 5.0


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

    async def run(ctx: TaskContext) -> Verdict:
        return await _run(agent, ctx)

    return run


async def _run(agent: Agent[Any, Any], ctx: TaskContext) -> Verdict:
    """Run the agent to its end, or for one iteration, or go on with it."""
    config = ctx.definition.config
    bound: TerminationCondition | None = None
    if config is not None:
        bound = MaxIterations(config.max_iterations)
        bound = bound | TimeLimit(config.max_duration) if config.max_duration else bound
    if config is not None and ctx.definition.dispatch == "iteration":
        result = await _run_iteration(agent, ctx, bound)
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


async def _run_iteration(
    agent: Agent[Any, Any], ctx: TaskContext, bound: TerminationCondition | None
) -> AgentResult[Any]:
    """One iteration of the agent."""
    thread_id = agent_thread(ctx.run_id, ctx.payload.step)
    if not ctx.payload.iteration and await agent.threads.store.peek(thread_id) is None:
        # A run yields after so many iterations when it is resumed: this one is begun, and left at its first transition.
        begun = _begin(agent, ctx, bound)
        async for _ in begun:
            agent.drain(thread_id=thread_id)
        if begun.result.stop_reason != YIELDED:
            return begun.result
    try:
        return await agent.resume(thread_id, termination=bound, yield_after=1)
    except NothingToResume:
        return await _begin(agent, ctx, bound)


def _prompt(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(encode_data(freeze(given)), ensure_ascii=False)
