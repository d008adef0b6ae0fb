"""What the plugin offers, readable without importing its matching engine."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="guardrails",
    api=(1, 0),
    summary="Redacts personal data and keys, blocks dangerous arguments and topics, before anything is recorded.",
    hooks=("locus_plugin_guardrails.hook:GuardrailsHook",),
    settings="locus_plugin_guardrails.settings:GuardrailsSettings",
    compat_paths={
        "locus.hooks.builtin:GuardrailsHook": "locus_plugin_guardrails.hook:GuardrailsHook",
        "locus.hooks.builtin:GuardrailsSettings": "locus_plugin_guardrails.settings:GuardrailsSettings",
    },
    guard=True,
    buffers=True,
)
