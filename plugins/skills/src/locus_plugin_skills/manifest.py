"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="skills",
    api=(1, 0),
    summary="Lists skills in the prompt, and lets the model read the ones that it needs.",
    hooks=("locus_plugin_skills.hook:SkillsHook",),
    settings="locus_plugin_skills.settings:SkillsSettings",
    after=("instructions",),
)
