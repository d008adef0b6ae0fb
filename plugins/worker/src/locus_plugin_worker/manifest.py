"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_NAMES = {
    "Back": "jobs",
    "Done": "jobs",
    "Handler": "jobs",
    "Job": "jobs",
    "Moment": "moments",
    "Notice": "notices",
    "Worker": "worker",
    "follow": "following",
    "load_agent": "loading",
    "read_moments": "moments",
}

plugin = Plugin(
    name="worker",
    api=(1, 0),
    summary="Runs what is submitted to queues: `locus submit`, `worker`, `runs`, `queues`, `workers`.",
    provides={"commands": "locus_plugin_worker.commands.registration"},
    settings="locus_plugin_worker.settings:WorkerSettings",
    harmless=("max_depth",),
    compat_paths={f"locus.worker:{name}": f"locus_plugin_worker.{home}:{name}" for name, home in _NAMES.items()},
)
