"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_RESEARCH = (
    "EXECUTE_STARTED",
    "EXECUTE_COMPLETED",
    "CAUSAL_BUILT",
    "SUMMARIZE_COMPLETED",
    "GROUNDING_EVALUATED",
    "REGENERATE_STARTED",
    "REGENERATE_COMPLETED",
    "REPLAN",
)
_DEEPAGENT = ("SUBAGENT_SPAWNED", "SUBAGENT_COMPLETED", "TODO_ADDED", "TODO_COMPLETED", "FS_WRITE", "FS_READ")
_NAMES = (
    "emit",
    "emit_sync",
    *(f"EV_RESEARCH_{name}" for name in _RESEARCH),
    *(f"EV_DEEPAGENT_{name}" for name in _DEEPAGENT),
)

plugin = Plugin(
    name="signals",
    api=(1, 0),
    summary="Sends signals from anywhere inside of a run, each as an event of its own.",
    hooks=("locus_plugin_signals.hook:SignalsHook",),
    compat_paths={f"locus.observability.emit:{name}": f"locus_plugin_signals.sender:{name}" for name in _NAMES},
)
