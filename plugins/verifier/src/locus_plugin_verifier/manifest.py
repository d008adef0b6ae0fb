"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="verifier",
    api=(1, 0),
    summary="Checks a claimed success before it is accepted: by a function, a command, or a second model.",
    hooks=("locus_plugin_verifier.hook:VerifierHook",),
    settings="locus_plugin_verifier.settings:VerifierSettings",
    compat_paths={
        "locus.hooks.builtin:VerifierHook": "locus_plugin_verifier.hook:VerifierHook",
        "locus.hooks.builtin:VerifierSettings": "locus_plugin_verifier.settings:VerifierSettings",
    },
    guard=True,
    after=("guardrails", "steering", "reflexion", "grounding"),
)
