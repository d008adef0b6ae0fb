"""`PendingWrite`: entries that a store writes while the loop goes on. `When`: how long an entry may wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import anyio
from attrs import define

if TYPE_CHECKING:
    from collections.abc import Mapping

    from locus.core.journal import Body, Transition
    from locus.core.state import AgentState
    from locus.journal.store import Appended, Posted

__all__ = ["WHEN_BEFORE", "PendingWrite", "When"]

#: When an entry must be written. ``"now"``: before the call returns. ``"meanwhile"``: it is begun, and the loop goes
#: on; it is there before the next entry, and before the next effect except a model call. ``"next"``: together with the
#: next entry, which comes before any effect. All but ``"now"`` are permissions: a host may always write at once.
When = Literal["now", "meanwhile", "next"]

#: By the node that follows a transition that is not reported to anybody.
WHEN_BEFORE: Mapping[str, When] = {"think": "meanwhile", "execute": "next", "terminate": "next", "end": "meanwhile"}


@define(eq=False)
class PendingWrite:
    """An append under way.

    Args:
        posted: asks the store.
        bodies: what is written.
        then: state and last transition once it is.
    """

    posted: Posted
    bodies: tuple[Body, ...]
    then: tuple[AgentState, Transition | None]
    _is_waited_for: bool = False
    _others: anyio.Event | None = None

    async def wait(self) -> Appended | None:
        """What came of it; None where another task asked already, and was told or left."""
        if self._is_waited_for:
            if self._others is None:
                self._others = anyio.Event()
            await self._others.wait()
            return None
        self._is_waited_for = True
        try:
            return await self.posted.wait()
        finally:
            self._is_waited_for = False
            if self._others is not None:
                self._others.set()
                self._others = None
