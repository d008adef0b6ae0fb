"""`AgentWorkflow`: a workflow that is one run of an agent, ready to be started by name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from temporalio import workflow

from locus.core import encode_data
from locus.core.errors import InputError
from locus_plugin_temporal.handover import Carried
from locus_plugin_temporal.running import YIELDED, carry, run

__all__ = ["AgentAnswer", "AgentTask", "AgentWorkflow"]


@dataclass(frozen=True, kw_only=True)
class AgentTask:
    """What to run.

    Args:
        agent: the name of the agent.
        prompt: the user's turn.
        thread_id: the name of the conversation; None = a new one.
        metadata: entries for ``state.metadata``.
        history_limit: after how many events of history the workflow continues as a new one.
        carried: an open run; the workflow sets it when it continues as new.
    """

    agent: str
    prompt: str
    thread_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    history_limit: int = 4_000
    carried: Carried | None = None


@dataclass(frozen=True, kw_only=True)
class AgentAnswer:
    """How it ended.

    Args:
        text: the final answer.
        stop_reason: why it stopped, such as ``"NoToolCalls"``.
        thread_id, run_id: of the run.
        tokens: that it has used.
        cost: dollars, or None.
        iterations: how many it has begun.
        error: what went wrong, or ``""``.
        metadata: of the state, in JSON.
    """

    text: str
    stop_reason: str
    thread_id: str
    run_id: str
    tokens: int
    cost: float | None
    iterations: int
    error: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@workflow.defn(name="locus.AgentWorkflow", failure_exception_types=[InputError])
class AgentWorkflow:
    """One run of an agent. Signals, queries and limits are those of `run`."""

    @workflow.run
    async def run(self, task: AgentTask) -> AgentAnswer:
        """Run the agent to its end."""
        result = await run(
            task.agent,
            task.prompt,
            thread_id=task.thread_id,
            metadata=task.metadata,
            carried=task.carried,
            history_limit=task.history_limit,
        )
        if result.stop_reason == YIELDED:
            workflow.continue_as_new(replace(task, prompt="", metadata={}, carried=await carry(result)))
        return AgentAnswer(
            text=result.text,
            stop_reason=result.stop_reason,
            thread_id=result.thread_id,
            run_id=result.run_id,
            tokens=result.usage.total_tokens,
            cost=result.cost,
            iterations=result.iterations,
            error="" if result.error is None else str(result.error),
            metadata=encode_data(result.state.metadata),
        )
