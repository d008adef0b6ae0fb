"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="planning",
    api=(1, 0),
    summary="Plans first, makes the planned calls without asking the model for each, and replans where one fails.",
    hooks=("locus_plugin_planning.hook:PlanningHook",),
    settings="locus_plugin_planning.settings:PlanningSettings",
    harmless=("max_steps", "max_replans", "window", "max_chars"),
    compat_paths={
        "locus.hooks.builtin:PlanningHook": "locus_plugin_planning.hook:PlanningHook",
        "locus.hooks.builtin:PlanningSettings": "locus_plugin_planning.settings:PlanningSettings",
    },
)
