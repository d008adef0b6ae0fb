"""`Threads`: the conversations that an agent's store keeps, as ``agent.threads``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from attrs import evolve

from locus.core.errors import ConfigError, LocusError, NothingToResume, ThreadBusy
from locus.core.frozen import frozen
from locus.core.journal import Answered, Cancelled
from locus.core.lazy import Lazy
from locus.journal.queue import QueueStore
from locus.journal.signals import Signal
from locus.journal.store import ThreadQuery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from locus.journal import history, host, listing
    from locus.journal.history import History
    from locus.journal.store import JournalStore, ThreadInfo
    from locus.result import AgentResult
else:
    history, listing = Lazy("locus.journal.history"), Lazy("locus.journal.listing")
    host = Lazy("locus.journal.host")

__all__ = ["Recovered", "Threads"]


@frozen(kw_only=True)
class Recovered:
    """A run whose worker was gone, and what became of it.

    Args:
        thread: how it was found.
        result: how it ended; None where it could not be resumed.
        error: why it could not.
    """

    thread: ThreadInfo
    result: AgentResult[Any] | None = None
    error: LocusError | None = None


@frozen
class Threads:
    """The threads in one store.

    Args:
        store: where they are kept.
        resume: resumes one of them, for `recover`; None where no agent is at hand.
        agent_id: the name of the agent that resumes, or ``""``.
    """

    store: JournalStore
    resume: Callable[..., Awaitable[AgentResult[Any]]] | None = None
    agent_id: str = ""

    async def list(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, or all of them; the most recently changed first.

        Raises:
            JournalError: the store does not record what the query asks for, or its ``after`` is not a thread.
        """
        return await self.store.threads(query)

    async def open_runs(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads whose run is open and whose worker is gone, where `Agent.resume` goes on.

        A run that waits for an answer, was set aside, or ended its segment in good order is not among them.

        Args:
            query: which of them; its status does not count.

        Raises:
            JournalError: the store does not record how a thread is.
        """
        return await self.store.threads(evolve(query or ThreadQuery(), status=("crashed",)))

    async def recover(
        self,
        *,
        max_attempts: int = 5,
        query: ThreadQuery | None = None,
        on_run: Callable[[Recovered], object] | None = None,
    ) -> tuple[Recovered, ...]:
        """Resume the runs of this agent whose worker is gone, one after another, each thread once.

        The runs of an agent with another name are left to that one, and children to their parents; so is a thread
        that another worker takes meanwhile.

        Args:
            max_attempts: after how many attempts that died in one place a run is set aside, 1 or more.
            query: which of them, as in `open_runs`; with its ``agent_id``, those of the agent with that name.
            on_run: called after each of them.

        Returns:
            What became of each.

        Raises:
            ConfigError: no agent is at hand; use ``agent.threads``.
            JournalError: the store does not record how a thread is.
        """
        if self.resume is None:
            raise ConfigError("these threads have no agent that could resume them; call agent.threads.recover()")
        made: list[Recovered] = []
        chosen = query or ThreadQuery()
        if chosen.agent_id is None:
            chosen = evolve(chosen, agent_id=self.agent_id)
        for info in await self.open_runs(chosen):
            if listing.parent_thread(info.thread_id) is not None:
                continue
            try:
                done = Recovered(thread=info, result=await self.resume(info.thread_id, max_attempts=max_attempts))
            except (ThreadBusy, NothingToResume):  # another worker was faster
                continue
            except LocusError as e:
                done = Recovered(thread=info, error=e)
            made.append(done)
            if on_run is not None:
                on_run(done)
        return tuple(made)

    async def cancel(self, thread_id: str, reason: str = "") -> bool:
        """End the open run of a thread at its next safe point, whichever process it is in.

        Args:
            thread_id: the thread.
            reason: shown as ``"Cancelled: <reason>"``.

        Returns:
            Whether a run is open there.

        Raises:
            ConfigError: the store brings no signals to other processes.
            StoreError: the store failed.
        """
        found = await host.JournalHost.peek(self.store, thread_id)
        submitted = None if found is None else found.submitted
        if found is None or (found.open_node is None and submitted is None):
            return False
        run_id = found.run_id if submitted is None else submitted.run_id
        return await self._signal(thread_id, Cancelled(run_id=run_id, reason=reason))

    async def answer(self, thread_id: str, answer: Any, interrupt_id: str = "") -> bool:
        """Answer a question of a run, which a worker then goes on with.

        Args:
            thread_id: the thread.
            answer: as in `Agent.resume`; what fits no open question is ignored.
            interrupt_id: the question; ``""`` = the one that is open.

        Returns:
            Whether the thread exists.

        Raises:
            ConfigError: the store brings no signals to other processes.
            StoreError: the store failed.
        """
        return await self._signal(thread_id, Answered(run_id="", interrupt_id=interrupt_id, answer=answer))

    async def _signal(self, thread_id: str, body: Cancelled | Answered) -> bool:
        if not isinstance(self.store, QueueStore):
            raise ConfigError(
                f"{type(self.store).__name__} brings no signals to runs; use agent.cancel and agent.resume"
            )
        return await self.store.signal(thread_id, Signal(body=body, id=uuid4().hex))

    async def show(self, thread_id: str) -> History:
        """What happened on a thread, transition by transition.

        Args:
            thread_id: the thread; a run may hold it meanwhile.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: the store keeps no history.
        """
        return await history.read_history(self.store, thread_id)
