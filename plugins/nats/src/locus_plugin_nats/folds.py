"""The states of runs that have yielded, for the next claim of their threads by this store.

A fold counts only while the newest message of its thread is the one with which this store gave the thread back.
Whatever another store has done since, even a claim alone, is a newer message; the thread is then read from the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from locus.journal import Snapshot
    from locus_plugin_nats.headers import Tip
    from locus_plugin_nats.session import Held

__all__ = ["KeptFold"]


@frozen
class KeptFold:
    """A state, and what was known of its thread when that was given back.

    Args:
        fold: the state after the newest transition.
        held: the claim that was given back, with the message that did so.
    """

    fold: Snapshot
    held: Held

    def fits(self, tip: Tip) -> bool:
        """Whether a message is the one with which the thread was given back."""
        # Its name as well: a stream that was made anew, or has lost its end, counts from an earlier sequence.
        return (self.held.seq, self.held.head.write) == (tip.seq, tip.head.write)
