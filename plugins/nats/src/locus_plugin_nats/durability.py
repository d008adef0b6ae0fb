"""What a power cut takes from a server: what its operator says, what can be checked of that, and what is not known.

A client cannot see whether a server syncs each write; its monitoring endpoint says so, where the settings name that.
"""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from typing import TYPE_CHECKING, Any

from locus_plugin_nats.errors import NatsProblem, NotSynced
from locus_plugin_nats.settings import NatsSettings

if TYPE_CHECKING:
    from locus_plugin_nats.session import Session

__all__ = ["check_durability", "describe_durability"]

_LOG = logging.getLogger("locus.nats")

#: Seconds for the answer of a monitoring endpoint, and bytes of it at most.
_PATIENCE, _LONGEST = 5.0, 1_000_000

#: Servers of which this process has warned already.
_warned: set[str] = set()


async def check_durability(session: Session, replicas: int | None = None) -> None:
    """Check what is promised, as far as that can be seen; warn once of a server that promises least.

    Args:
        session: the store, connected.
        replicas: of the stream of journals, where that is known.

    Raises:
        NotSynced: ``durability="fsync"`` is promised, and the server does not sync each write.
        NatsProblem: the monitoring endpoint does not answer.
    """
    settings = session.settings
    if settings.durability == "fsync" and settings.monitor is not None:
        if not await _syncs_always(session.server, settings.monitor):
            raise NotSynced(
                session.server,
                'durability is "fsync", and the server does not sync each write: start it with `sync_interval: always` '
                'in its jetstream block (`locus nats dev --sync`), or say durability = "process" in [plugins.nats]',
            )
    elif settings.durability == "process" and replicas == 1 and session.server not in _warned:
        _warned.add(session.server)
        _LOG.warning(
            "%s: a power cut takes up to 2 minutes of what was acknowledged, unless the server syncs each write; "
            "`locus plugins doctor nats` says what to do",
            session.server,
        )


def describe_durability(settings: NatsSettings) -> str:
    """What a power cut takes from a server that keeps what the settings promise."""
    if settings.durability == "replicated":
        return "a power cut takes nothing, unless most replicas lose power at once"
    if settings.durability == "fsync":
        how = "was checked" if settings.monitor is not None else "is not checked, as monitor is not set"
        return f"a power cut takes nothing; that the server syncs each write {how}"
    return (
        "a power cut takes what was written since the server last synced, up to 2 minutes by its default, and a tool "
        "that may run once only may run again; start the server with `sync_interval: always` and say "
        'durability = "fsync" in [plugins.nats], or use 3 replicas and durability = "replicated"'
    )


async def _syncs_always(server: str, monitor: str) -> bool:
    """Whether the server says that it syncs each write.

    Raises:
        NatsProblem: its monitoring endpoint does not answer, or does not know.
    """
    address = f"{monitor.rstrip('/')}/varz"

    def ask() -> Any:
        with urllib.request.urlopen(address, timeout=_PATIENCE) as answer:  # noqa: S310 - http or https, see settings
            return json.loads(answer.read(_LONGEST))

    try:
        config = (await asyncio.to_thread(ask))["jetstream"]["config"]
        return bool(config.get("sync_always", False))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as e:
        raise NatsProblem(
            server,
            f"its monitoring endpoint {address} did not say whether it syncs each write ({type(e).__name__}); correct "
            "monitor in [plugins.nats], or leave it out to trust durability as it is",
        ) from None
