"""What the plugin offers, readable without importing temporalio."""

from __future__ import annotations

from locus.plugin import Plugin

NAMES = {
    "ActivityFailed": "errors",
    "AgentAnswer": "workflow",
    "AgentTask": "workflow",
    "AgentWorkflow": "workflow",
    "Carried": "handover",
    "DevServer": "dev",
    "LocusPlugin": "plugin",
    "NotAnActivity": "errors",
    "NotInWorkflow": "errors",
    "carry": "running",
    "run": "running",
}

plugin = Plugin(
    name="temporal",
    api=(1, 0),
    summary="Runs agents in Temporal workflows: model calls and tools are activities.",
    compat_paths={f"locus.temporal:{name}": f"locus_plugin_temporal.{home}:{name}" for name, home in NAMES.items()},
)
