"""What the plugin offers, readable without importing an HTTP client or anything else that is heavy."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="openai",
    api=(1, 0),
    summary="Models behind OpenAI's APIs: OpenAI, Azure, OpenRouter, vLLM, LM Studio, llama.cpp and others.",
    settings="locus_plugin_openai.settings:OpenAISettings",
    harmless=("reasoning_effort", "parallel_tool_calls", "timeout", "connect_timeout", "silence", "connections"),
    provides={
        "model": "locus_plugin_openai.model:make",
        "models": "locus_plugin_openai.listing:models",
        "default_model": "locus_plugin_openai.listing:default_model",
    },
)
