"""Runs of agents as jobs: which agent a run is for, and what its end means for the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
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
from locus.journal import JournalHost, pinned_queue
from locus_plugin_worker.jobs import Back, Done, Job, Verdict

if TYPE_CHECKING:
    from locus import AgentResult
    from locus.core.events import Event
    from locus_plugin_worker.stores import WorkerStore

__all__ = ["AgentJobs", "queue_of"]

#: Seconds after which a run is offered again for whose agent this worker has no code.
_ELSEWHERE = 5.0

#: The stop reason of a run that made room or sleeps, and where the state keeps the version of the agent that began it.
_YIELDED, _VERSION = "Yielded", "locus.version"


def queue_of(agent: str, version: str = "") -> str:
    """The queue of an agent, or the one of runs that no other version of it can go on with."""
    return pinned_queue(agent, version) if version else agent


class AgentJobs:
    """A `Handler` that goes on with runs of agents.

    Args:
        agents: the agents.
        store: where their threads are.
        deps: what tools get as ``ctx.deps``.
        max_attempts: after so many attempts that died in one place a run is set aside.
        on_event: hears the events of their runs.

    Raises:
        ConfigError: an agent has no name, or two have the same one.
    """

    def __init__(
        self,
        agents: Iterable[Agent[Any, Any]],
        store: WorkerStore,
        *,
        deps: Any = None,
        max_attempts: int = 5,
        on_event: Callable[[Event], None] | None = None,
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
            made = each if each.runtime.store is store else each.with_checkpointer(store)
            self._agents[each.name] = made if on_event is None else made.with_listener("worker", on_event)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of the agents themselves."""
        versions = (queue_of(name, each.version) for name, each in self._agents.items() if each.version)
        return (*self._agents, *versions)

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
            return await self._to_its_version(job, str(e))
        except (JournalDamaged, CheckpointError) as e:
            return Done(text=f"it cannot be read: {e}", is_failure=True)
        return await self._verdict(result, job)

    async def _find(self, job: Job) -> Agent[Any, Any] | Verdict:
        """The agent of the run, or what becomes of an offer that is for none of these."""
        if job.queue in self._agents:
            return self._agents[job.queue]
        host = await JournalHost.peek(self._store, job.thread_id)
        if host is None:
            return Done(text="the thread is gone")
        turn = host.submitted
        name = host.state.agent_id or "" if turn is None else turn.agent
        found = self._agents.get(name)
        if found is not None:
            is_bound = job.queue.startswith(pinned_queue(name, ""))
            if is_bound and job.queue != pinned_queue(name, found.version or ""):
                return Back(delay=_ELSEWHERE, text=f"bound to another version of {name!r}")
            return found
        return Back(delay=_ELSEWHERE, queue=queue_of(name) or None, text=f"no agent {name!r} here", is_failure=True)

    async def _to_its_version(self, job: Job, why: str) -> Back:
        """Leave a run to workers with the version of the agent that began it; no attempt of it has died."""
        host = await JournalHost.peek(self._store, job.thread_id)
        state = None if host is None else host.state
        version = "" if state is None else str(state.metadata.get(_VERSION) or "")
        name = "" if state is None else state.agent_id or ""
        here = self._agents.get(name)
        if not version or (here is not None and here.version == version):
            return Back(delay=_ELSEWHERE, text=why, is_failure=True)
        return Back(queue=queue_of(name, version), text=f"begun by version {version}: {why}")

    async def _verdict(self, result: AgentResult[Any], job: Job) -> Verdict:
        """What the end of a segment means for the offer."""
        if result.stop_reason == _YIELDED:
            now = datetime.now(UTC)
            due = result.not_before or now
            text = "yielded" if result.not_before is None else f"sleeps until {due.isoformat(timespec='seconds')}"
            return Back(delay=max(0.0, (due - now).total_seconds()), text=text)
        if result.interrupts:
            questions = "; ".join(each.question for each in result.interrupts)
            return Done(text=f"waits for an answer: {questions}")
        if not result.is_open and await self._store.signals(job.thread_id):
            return Back(text=f"{result.stop_reason}, and its next turn follows")
        return Done(text=result.stop_reason, is_failure=result.failed)

    async def _run(self, agent: Agent[Any, Any], job: Job) -> AgentResult[Any]:
        run = agent.resume(job.thread_id, max_attempts=self._max_attempts, deps=self._deps)
        failed: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(_drain_on_leaving, agent, job)
            try:
                result = await run
            except Exception as e:  # noqa: BLE001  outside of the group it is raised as it is
                failed = e
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return result


async def _drain_on_leaving(agent: Agent[Any, Any], job: Job) -> None:
    await job.leaving.wait()
    agent.drain(thread_id=job.thread_id)
