"""An agent as a step: no handler is written for it.

Its conversation is a thread of its own, ``<run>/<step>/agent``, so nothing of it is a checkpoint: a worker that takes
the step over goes on where the journal of the agent ends. The bounds of the step are or-ed with the agent's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from locus import Agent
from locus.core import encode_data, freeze
from locus.core.errors import ConfigError, RunFailed
from locus.core.termination import MaxIterations, TerminationCondition, TimeLimit
from locus_plugin_workflow.context import Suspended, TaskContext
from locus_plugin_workflow.verdicts import Verdict

__all__ = ["agent_thread", "handler_of"]

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
    """Run the agent to its end, or go on with it."""
    config = ctx.definition.config
    bound: TerminationCondition | None = None
    if config is not None:
        bound = MaxIterations(config.max_iterations)
        bound = bound | TimeLimit(config.max_duration) if config.max_duration else bound
    result = await agent.run(
        _prompt(ctx.input()),
        thread_id=agent_thread(ctx.run_id, ctx.payload.step),
        request_id=ctx.run_id,
        termination=bound,
    )
    if result.interrupts:
        now = ctx._journal.host.effects.now()  # noqa: SLF001  the worker's clock
        raise Suspended(now + timedelta(seconds=_ASK_AGAIN))
    if config is not None and result.stop_reason == "MaxIterations" and result.state.iteration >= config.max_iterations:
        return ctx.fail_permanent(f"the agent did not end in {config.max_iterations} iterations")
    try:
        result.raise_for_failure()
    except RunFailed as e:
        return ctx.fail(e)
    return ctx.complete(result.parsed if result.parsed is not None else result.text)


def _prompt(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(encode_data(freeze(given)), ensure_ascii=False)
