"""`Threads`: the conversations that an agent's store keeps, as ``agent.threads``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from locus.core.lazy import Lazy
from locus.journal.store import ThreadQuery

if TYPE_CHECKING:
    from locus.journal import history
    from locus.journal.history import History
    from locus.journal.store import JournalStore, ThreadInfo
else:
    history = Lazy("locus.journal.history")

__all__ = ["Threads"]


@frozen
class Threads:
    """The threads in one store.

    Args:
        store: where they are kept.
    """

    store: JournalStore

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

    async def show(self, thread_id: str) -> History:
        """What happened on a thread, transition by transition.

        Args:
            thread_id: the thread; a run may hold it meanwhile.

        Raises:
            NothingToResume: there is no such thread.
            JournalError: the store keeps no history.
        """
        return await history.read_history(self.store, thread_id)
