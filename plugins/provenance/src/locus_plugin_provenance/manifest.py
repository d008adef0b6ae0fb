"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="provenance",
    api=(1, 0),
    summary="Asks before a call reaches a target that someone other than the user may have chosen.",
    hooks=("locus_plugin_provenance.hook:ProvenanceHook",),
    settings="locus_plugin_provenance.settings:ProvenanceSettings",
    compat_paths={
        "locus.hooks.builtin:ProvenanceHook": "locus_plugin_provenance.hook:ProvenanceHook",
        "locus.hooks.builtin:ProvenanceSettings": "locus_plugin_provenance.settings:ProvenanceSettings",
    },
    guard=True,
    after=("guardrails",),
)
