"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="subagents",
    api=(1, 0),
    summary="Lets the model give pieces of its work to subagents, which run as children of its run.",
    hooks=("locus_plugin_subagents.hook:SubagentsHook",),
    settings="locus_plugin_subagents.settings:SubagentsSettings",
    compat_paths={
        "locus.deepagent:SubAgentDef": "locus_plugin_subagents.definition:SubAgentDef",
        "locus.deepagent.subagent:SubAgentDef": "locus_plugin_subagents.definition:SubAgentDef",
        "locus.deepagent.subagent:task_tool": "locus_plugin_subagents.task:task_tool",
        "locus.hooks.builtin:SubagentsHook": "locus_plugin_subagents.hook:SubagentsHook",
        "locus.hooks.builtin:SubagentsSettings": "locus_plugin_subagents.settings:SubagentsSettings",
    },
)
