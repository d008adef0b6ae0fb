"""`Writing`: entries that a store writes while the loop goes on, and what stands once they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from attrs import define

if TYPE_CHECKING:
    from locus.core.journal import Body, Transition
    from locus.core.state import AgentState
    from locus.journal.store import Appended, Posted

__all__ = ["Writing"]


@define(eq=False)
class Writing:
    """An append under way.

    Args:
        posted: asks the store.
        bodies: what is written.
        then: state and last transition once it is.
    """

    posted: Posted
    bodies: tuple[Body, ...]
    then: tuple[AgentState, Transition | None]
    _asked: bool = False
    _others: anyio.Event | None = None

    async def known(self) -> Appended | None:
        """What came of it; None where another task asked already, and was told or left."""
        if self._asked:
            if self._others is None:
                self._others = anyio.Event()
            await self._others.wait()
            return None
        self._asked = True
        try:
            return await self.posted.wait()
        finally:
            self._asked = False
            if self._others is not None:
                self._others.set()
                self._others = None
