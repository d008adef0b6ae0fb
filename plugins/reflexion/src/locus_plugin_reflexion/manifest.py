"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="reflexion",
    api=(1, 0),
    summary="Judges the last step between Execute and Think, and keeps an absolute confidence.",
    hooks=("locus_plugin_reflexion.hooks:ReflexionHook",),
    settings="locus_plugin_reflexion.settings:ReflexionSettings",
    harmless=("interval", "window", "max_chars", "lessons"),
    keywords={"reflexion_interval": "interval"},
    after=("guardrails",),
    compat_paths={
        "locus.reasoning.reflexion:Reflection": "locus_plugin_reflexion.reflection:Reflection",
        "locus.reasoning.reflexion:Reflector": "locus_plugin_reflexion.reflector:Reflector",
        "locus.reasoning.reflexion:StepVerdict": "locus_plugin_reflexion.reflection:StepVerdict",
    },
)
