"""Where a segment of a run breaks off: its consumer leaves, its task is cancelled, or its process is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import anyio
import anyio.lowlevel
from attrs import field, frozen
from hypothesis import strategies as st

from locus.core.journal import Body
from locus.journal import MemoryStore
from locus.journal.store import Appended, Claim
from locus_testkit import SimulatedCrash

__all__ = ["Break", "Fragile", "breaks"]


@frozen
class Break:
    """Where a segment breaks off, if it gets that far."""

    how: Literal["left", "cancelled", "died"]
    at: int
    stored: bool = field(default=False)


breaks = st.builds(Break, st.sampled_from(["left", "cancelled", "died"]), st.integers(1, 14), st.booleans())


class Fragile(MemoryStore):
    """A store whose n-th write from now is where something happens."""

    snapshot_every: int | None = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.plan: Break | None = None
        self.scope: anyio.CancelScope | None = None
        self.left = 0

    def expect(self, plan: Break | None, scope: anyio.CancelScope) -> None:
        self.plan, self.scope, self.left = plan, scope, plan.at if plan is not None else 0

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        plan = self.plan
        if plan is None or plan.how == "left":
            return await super().append(claim, bodies)
        self.left -= 1
        if self.left != 0:
            return await super().append(claim, bodies)
        if plan.stored:
            await super().append(claim, bodies)
        if plan.how == "died":
            raise SimulatedCrash
        assert self.scope is not None
        self.scope.cancel()
        await anyio.lowlevel.checkpoint()
        raise AssertionError("unreachable: the scope is cancelled")
