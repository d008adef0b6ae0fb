"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="instructions",
    api=(1, 0),
    summary="Puts the AGENTS.md files of a project into the system prompt.",
    hooks=("locus_plugin_instructions.hook:InstructionsHook",),
    settings="locus_plugin_instructions.settings:InstructionsSettings",
    compat_paths={
        "locus.deepagent.memory:load_agents_md": "locus_plugin_instructions.files:load_agents_md",
        "locus.deepagent.memory:prepend_instructions": "locus_plugin_instructions.files:prepend_instructions",
    },
)
