"""What tests do to a store's streams behind its back."""

from __future__ import annotations

from locus_plugin_nats import NatsStore

__all__ = ["expire_lease"]


async def expire_lease(store: NatsStore) -> None:
    """Let the server forget the lease of a store, as it does when its time is over."""
    await store._do(lambda session: session.lease.end())
