"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="knowledge",
    api=(1, 0),
    summary="Researches each item of a domain into a row of a catalog, and lets agents search the catalog.",
    hooks=("locus_plugin_knowledge.hook:KnowledgeHook",),
    settings="locus_plugin_knowledge.settings:KnowledgeSettings",
    harmless=("limit", "max_chars"),
    compat_paths={
        "locus.deepagent.protocol:Grounding": "locus_plugin_knowledge.protocol:Grounding",
        "locus.deepagent.protocol:ItemRef": "locus_plugin_knowledge.protocol:ItemRef",
        "locus.deepagent.protocol:KnowledgeProvider": "locus_plugin_knowledge.protocol:KnowledgeProvider",
        "locus.deepagent.protocol:KnowledgeRow": "locus_plugin_knowledge.protocol:KnowledgeRow",
        "locus.hooks.builtin:KnowledgeHook": "locus_plugin_knowledge.hook:KnowledgeHook",
        "locus.hooks.builtin:KnowledgeSettings": "locus_plugin_knowledge.settings:KnowledgeSettings",
    },
)
