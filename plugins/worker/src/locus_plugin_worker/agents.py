"""Runs of agents as jobs: which agent a run is for, and what its end means for the queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import anyio

from locus import Agent
from locus.core.errors import (
    CheckpointError,
    ConfigError,
    DeadLetter,
    Fenced,
    JournalDamaged,
    NothingToResume,
    StepMismatch,
    ThreadBusy,
)
from locus.core.journal import Submitted, Transition
from locus.journal import JournalHost
from locus_plugin_worker.jobs import Back, Done, Job, Verdict

if TYPE_CHECKING:
    from locus import AgentResult, Run
    from locus.journal import Claim, JournalStore

__all__ = ["AgentJobs", "queue_of"]

#: Seconds after which a run is offered again for whose agent this worker has no code.
_ELSEWHERE = 5.0


def queue_of(name: str, version: str = "") -> str:
    """The queue of an agent, or of one version of it."""
    return f"agent.{name}@{version}" if version else f"agent.{name}"


class AgentJobs:
    """A `Handler` that goes on with runs of agents.

    Args:
        agents: the agents.
        store: where their threads are.
        deps: what tools get as ``ctx.deps``.
        max_attempts: after so many attempts that died in one place a run is set aside.

    Raises:
        ConfigError: an agent has no name, or two have the same one.
    """

    def __init__(
        self, agents: Iterable[Agent[Any, Any]], store: JournalStore, *, deps: Any = None, max_attempts: int = 5
    ) -> None:
        self._agents: dict[str, Agent[Any, Any]] = {}
        self._store, self._deps, self._max_attempts = store, deps, max_attempts
        for each in agents:
            if not each.name:
                raise ConfigError(
                    f"{each!r} needs a name, by which a worker knows its runs; write Agent(..., name=...)"
                )
            if each.name in self._agents:
                raise ConfigError(f"two agents are named {each.name!r}; a worker could not tell their runs apart")
            self._agents[each.name] = each if each.runtime.store is store else each.with_checkpointer(store)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of the agents themselves."""
        return tuple(queue_of(name) for name in self._agents)

    async def __call__(self, job: Job) -> Verdict:
        """Go on with the run of a thread, or say why not."""
        agent = await self._find(job)
        if not isinstance(agent, Agent):
            return agent
        try:
            result = await self._run(agent, job)
        except ThreadBusy as e:
            return Back(delay=job.lease / 4, text=f"held by {e.holder}")
        except Fenced as e:
            return Back(delay=job.lease / 4, text=f"another worker took it over: {e}")
        except NothingToResume:
            return Done(text="nothing was left to do")
        except DeadLetter as e:
            return Done(text=f"set aside: {e.cause}", is_failure=True)
        except StepMismatch as e:
            return Back(delay=_ELSEWHERE, text=str(e), is_failure=True)
        except (JournalDamaged, CheckpointError) as e:
            return Done(text=f"it cannot be read: {e}", is_failure=True)
        return _verdict(result)

    async def _find(self, job: Job) -> Agent[Any, Any] | Verdict:
        """The agent of the run, or what becomes of an offer that is for none of these."""
        for name, agent in self._agents.items():
            if job.queue == queue_of(name):
                return agent
        host = await JournalHost.peek(self._store, job.thread_id)
        if host is None:
            return Done(text="the thread is gone")
        name, version = _agent_of(host)
        found = self._agents.get(name)
        if found is not None:
            return found
        return Back(delay=_ELSEWHERE, queue=queue_of(name, version), text=f"no agent {name!r} here", is_failure=True)

    async def _run(self, agent: Agent[Any, Any], job: Job) -> AgentResult[Any]:
        run = await self._start(agent, job)
        failed: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(_yield_on_leaving, run, job)
            try:
                result = await run
            except Exception as e:  # noqa: BLE001  outside of the group it is raised as it is
                failed = e
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return result

    async def _start(self, agent: Agent[Any, Any], job: Job) -> Run[Any]:
        """The turn that was handed in, or the run that is open."""
        found = await self._store.peek(job.thread_id)
        turn = None if found is None else _open_turn(found)
        if turn is None:
            return agent.resume(job.thread_id, max_attempts=self._max_attempts, deps=self._deps)
        return agent.run(
            [turn.prompt],
            thread_id=job.thread_id,
            request_id=turn.run_id,
            metadata=turn.metadata,
            deps=self._deps,
        )


def _open_turn(found: Claim) -> Submitted | None:
    """The newest turn that was handed in and has not begun."""
    for entry in reversed(found.entries):
        if isinstance(entry.body, Submitted):
            return entry.body
        if isinstance(entry.body, Transition):
            return None
    return None


async def _yield_on_leaving(run: Run[Any], job: Job) -> None:
    await job.leaving.wait()
    getattr(run, "give_way", lambda: None)()


def _agent_of(host: JournalHost) -> tuple[str, str]:
    """The name and version of the agent that a thread waits for."""
    for entry in reversed(host.claim.entries):
        if isinstance(entry.body, Submitted):
            return entry.body.agent, entry.body.version
    return host.state.agent_id or "", ""


def _verdict(result: AgentResult[Any]) -> Verdict:
    if result.interrupts:
        questions = "; ".join(each.question for each in result.interrupts)
        return Done(text=f"waits for an answer: {questions}")
    return Done(text=result.stop_reason, is_failure=result.failed)
