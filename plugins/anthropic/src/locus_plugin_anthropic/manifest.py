"""What the plugin offers, readable without importing an HTTP client."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="anthropic",
    api=(1, 0),
    summary="Claude models, and every server that speaks the Messages API.",
    settings="locus_plugin_anthropic.settings:AnthropicSettings",
    harmless=("max_tokens", "effort", "parallel_tools", "timeout", "silence", "connections"),
    provides={
        "model": "locus_plugin_anthropic.model:make",
        "models": "locus_plugin_anthropic.listing:models",
        "default_model": "locus_plugin_anthropic.listing:default_model",
    },
)
