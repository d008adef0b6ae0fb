"""The states of runs that have yielded, for the next claim of their threads by this store.

A fold counts only while its thread ends with the entry with which it ended then, of the same number and by the same
writer, and has the same newest snapshot. Another store that has written since has changed one of these; the thread is
then read from the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal import Snapshot

__all__ = ["KeptFold"]


@frozen
class KeptFold:
    """A state, and where the thread and its snapshots in the tables ended then.

    Args:
        fold: the state after the newest transition.
        head: number of the thread's newest entry.
        tip: writer of that.
        at: number of the entry of the newest snapshot in the tables; 0 = it had none.
        state: the state there, from which the next one is written.
    """

    fold: Snapshot
    head: int
    tip: str
    at: int
    state: AgentState

    def fits(self, head: int, tip: str) -> bool:
        """Whether the thread ends as it did."""
        return (self.head, self.tip) == (head, tip)
