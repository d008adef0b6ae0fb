"""What the plugin offers, readable without importing llama.cpp or anything else that is heavy."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="llamacpp",
    api=(1, 0),
    summary="Language models in this process: GGUF weights run by llama.cpp.",
    settings="locus_plugin_llamacpp.settings:LlamaCppSettings",
    harmless=("n_ctx", "threads", "slots", "max_tokens", "temperature", "seed", "repeat_guard", "progress"),
    provides={
        "model": "locus_plugin_llamacpp.model:make",
        "models": "locus_plugin_llamacpp.listing:models",
        "default_model": "locus_plugin_llamacpp.listing:default_model",
        "pinned_files": "locus_plugin_llamacpp.listing:pinned_files",
    },
)
