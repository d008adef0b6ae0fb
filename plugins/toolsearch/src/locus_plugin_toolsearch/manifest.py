"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="toolsearch",
    api=(1, 0),
    summary="Sends the model only the tools that fit, where there are many, and lets it search for others.",
    hooks=("locus_plugin_toolsearch.hook:ToolSearchHook",),
    settings="locus_plugin_toolsearch.settings:ToolSearchSettings",
    provides={"pinned_files": "locus_plugin_toolsearch.minilm:pinned_files"},
    harmless=("threshold", "top", "results", "keep"),
    compat_paths={
        "locus.hooks.builtin:ToolSearchHook": "locus_plugin_toolsearch.hook:ToolSearchHook",
        "locus.hooks.builtin:ToolSearchSettings": "locus_plugin_toolsearch.settings:ToolSearchSettings",
    },
)
