"""What the plugin offers, readable without importing an HTTP client or anything else that is heavy."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="ollama",
    api=(1, 0),
    summary="Models of an Ollama server, on this machine or another.",
    settings="locus_plugin_ollama.settings:OllamaSettings",
    harmless=(
        "think",
        "num_ctx",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "timeout",
        "connect_timeout",
        "silence",
        "connections",
    ),
    provides={
        "model": "locus_plugin_ollama.model:make",
        "models": "locus_plugin_ollama.listing:models",
    },
)
