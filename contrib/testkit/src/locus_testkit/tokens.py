"""`ExpiringToken`: a secret that is another one each time it is asked for."""

from __future__ import annotations

import anyio.lowlevel
from attrs import define, field

__all__ = ["ExpiringToken"]


@define
class ExpiringToken:
    """Gives ``hush-hush-0``, ``hush-hush-1`` and so on; pass `get` or `aget` to `Secret`.

    Args:
        given: what was given so far.
    """

    given: list[str] = field(factory=list)

    def get(self) -> str:
        """The next one."""
        self.given.append(f"hush-hush-{len(self.given)}")
        return self.given[-1]

    async def aget(self) -> str:
        """The next one, after a checkpoint."""
        await anyio.lowlevel.checkpoint()
        return self.get()
