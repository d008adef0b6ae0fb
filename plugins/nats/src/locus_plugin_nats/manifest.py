"""What the plugin offers, readable without importing nats."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="nats",
    api=(1, 0),
    summary="Journals and queues on NATS JetStream: crash-proof, shared by the workers of many machines.",
    settings="locus_plugin_nats.settings:NatsSettings",
    provides={
        "checkpointer": "locus_plugin_nats.store:make",
        "commands": "locus_plugin_nats.registration",
        "doctor": "locus_plugin_nats.doctor:examine",
    },
    compat_paths={
        "locus.nats:NatsStore": "locus_plugin_nats.store:NatsStore",
        "locus.nats:NatsSettings": "locus_plugin_nats.settings:NatsSettings",
        "locus.nats:NatsUnreachable": "locus_plugin_nats.errors:NatsUnreachable",
        "locus.nats:StreamFull": "locus_plugin_nats.errors:StreamFull",
        "locus.nats:StreamMismatch": "locus_plugin_nats.errors:StreamMismatch",
        "locus.nats:TooOld": "locus_plugin_nats.errors:TooOld",
    },
)
