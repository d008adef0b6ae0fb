"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="steering",
    api=(1, 0),
    summary="A second model votes on each tool call before its body runs.",
    hooks=("locus_plugin_steering.hook:SteeringHook",),
    settings="locus_plugin_steering.settings:SteeringSettings",
    compat_paths={
        "locus.hooks.builtin:SteeringHook": "locus_plugin_steering.hook:SteeringHook",
        "locus.hooks.builtin:SteeringSettings": "locus_plugin_steering.settings:SteeringSettings",
    },
    guard=True,
    after=("guardrails",),
)
