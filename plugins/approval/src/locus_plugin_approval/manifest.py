"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="approval",
    api=(1, 0),
    summary="A person allows, rejects or edits the calls of the tools that you name.",
    hooks=("locus_plugin_approval.hook:ApprovalHook",),
    settings="locus_plugin_approval.settings:ApprovalSettings",
    compat_paths={
        "locus.hooks.builtin:ApprovalHook": "locus_plugin_approval.hook:ApprovalHook",
        "locus.hooks.builtin:ApprovalSettings": "locus_plugin_approval.settings:ApprovalSettings",
    },
    guard=True,
    after=("guardrails",),
)
