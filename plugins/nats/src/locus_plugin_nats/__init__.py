"""Journals on NATS JetStream: one server or a cluster, for the workers of many machines.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_nats.dev import DevServer
    from locus_plugin_nats.errors import (
        NatsProblem,
        NatsRefused,
        NatsUnreachable,
        NotSynced,
        StoreClosed,
        StreamFull,
        StreamMismatch,
        TooOld,
    )
    from locus_plugin_nats.settings import NatsSettings
    from locus_plugin_nats.store import NatsStore

__all__ = [
    "DevServer",
    "NatsProblem",
    "NatsRefused",
    "NatsSettings",
    "NatsStore",
    "NatsUnreachable",
    "NotSynced",
    "StoreClosed",
    "StreamFull",
    "StreamMismatch",
    "TooOld",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_nats.dev": ("DevServer",),
        "locus_plugin_nats.errors": (
            "NatsProblem",
            "NatsRefused",
            "NatsUnreachable",
            "NotSynced",
            "StoreClosed",
            "StreamFull",
            "StreamMismatch",
            "TooOld",
        ),
        "locus_plugin_nats.settings": ("NatsSettings",),
        "locus_plugin_nats.store": ("NatsStore",),
    },
)
