"""`Threads`: the conversations that an agent's store keeps, as ``agent.threads``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from locus.core.lazy import Lazy

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

    async def list(self) -> tuple[ThreadInfo, ...]:
        """What there is, the newest first."""
        return await self.store.threads()

    async def show(self, thread_id: str) -> History:
        """What happened on a thread, transition by transition.

        Args:
            thread_id: the thread; a run may hold it meanwhile.

        Raises:
            NothingToResume: there is no such thread.
            JournalError: the store keeps no history.
        """
        return await history.read_history(self.store, thread_id)
