"""That a worker lives: one message a store, which expires by itself on the server's clock.

A worker's clock does not matter, and renewing does not make journals longer. A lease decides who may try to claim a
thread; what may be written is decided by the fence alone.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from locus_plugin_nats.subjects import new_token
from locus_plugin_nats.wire import ApiError, ConnectionLost

if TYPE_CHECKING:
    from locus_plugin_nats.session import Session

__all__ = ["Lease"]


class Lease:
    """The lease of one store, and those of others."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: What the store is called in `Head.worker`.
        self.worker = new_token()
        self._renewed = -math.inf
        self._grace = -math.inf

    @property
    def _subject(self) -> str:
        return self._session.names.worker(self.worker)

    async def hold(self, *, now: bool = False) -> None:
        """Renew it, where a third of its time has gone by.

        Args:
            now: renew it in any case.

        Raises:
            NatsUnreachable: the server does not answer.
        """
        lease, at = self._session.settings.lease, time.monotonic()
        if not now and at - self._renewed < lease / 3:
            return
        deadline = at + self._session.settings.patience
        while True:
            await self._session.wire.up(deadline)
            try:
                # The server counts in whole seconds.
                await self._session.wire.publish(self._subject, b"", {"Nats-TTL": f"{math.ceil(lease)}s"})
            except ConnectionLost:
                if time.monotonic() >= deadline:
                    raise self._session.wire.unreachable() from None
                continue
            except ApiError as e:
                raise self._session.problem(e) from None
            self._renewed = at
            return

    async def end(self) -> None:
        """Let it expire at once."""
        if self._renewed > -math.inf:
            self._renewed = -math.inf
            await self._session.wire.api(f"STREAM.PURGE.{self._session.names.workers}", filter=self._subject)

    def grant(self) -> None:
        """After the server was away, take every worker for alive for one lease: they could not renew theirs."""
        self._grace = time.monotonic() + self._session.settings.lease

    async def is_alive(self, worker: str, token: str) -> bool:
        """Whether the holder of a claim lives."""
        if not worker:
            return False
        if worker == self.worker:  # whatever became of its lease while the machine slept
            return token in self._session.held
        if time.monotonic() < self._grace:
            return True
        names = self._session.names
        try:
            await self._session.wire.api(f"STREAM.MSG.GET.{names.workers}", last_by_subj=names.worker(worker))
        except ApiError as e:
            if not e.is_missing:
                raise self._session.problem(e) from None
            return False
        return True

    async def living(self) -> frozenset[str]:
        """All the stores that live; those that are granted it included by `is_alive` alone."""
        names = self._session.names
        info = await self._session.wire.api(f"STREAM.INFO.{names.workers}", subjects_filter=names.worker("*"))
        subjects = info.get("state", {}).get("subjects") or {}
        return frozenset(subject.rsplit(".", 1)[1] for subject in subjects)

    def listed_alive(self, worker: str, token: str, living: frozenset[str]) -> bool:
        """Whether the holder of a claim lives, as `living` has it."""
        if worker == self.worker:
            return token in self._session.held
        return bool(worker) and (worker in living or time.monotonic() < self._grace)
