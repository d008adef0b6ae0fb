"""What tests do to a store's streams behind its back."""

from __future__ import annotations

from attrs import evolve

from locus_plugin_nats import NatsStore
from locus_plugin_nats.session import Session

__all__ = ["expire_lease", "set_ahead", "set_patience"]


async def expire_lease(store: NatsStore) -> None:
    """Let the server forget the lease of a store, as it does when its time is over."""
    await store._do(lambda session: session.lease.end())


async def set_ahead(store: NatsStore, microseconds: int) -> None:
    """Have a store take the server's clock for so much later, where it is about offers."""

    async def work(session: Session) -> None:
        session.index.ahead = microseconds

    if not store._closed:
        await store._do(work)


async def set_patience(store: NatsStore, seconds: float) -> None:
    """Have a store wait so long for its server from now on."""

    async def work(session: Session) -> None:
        session.settings = evolve(session.settings, patience=seconds)

    await store._do(work)
