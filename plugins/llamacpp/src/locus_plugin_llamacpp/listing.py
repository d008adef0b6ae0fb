"""What ``locus models`` shows of this plugin, and what it offers as a default."""

from __future__ import annotations

from collections.abc import Mapping

from locus_plugin_llamacpp.model import available
from locus_plugin_llamacpp.settings import LlamaCppSettings

__all__ = ["default_model", "models"]

#: By convention: below any provider whose key is in the environment, because a hosted model is the better one.
_PRIORITY = 10


def models(settings: LlamaCppSettings | None) -> list[tuple[str, str]]:
    """The packaged models with a note each, and the two forms that name any other GGUF file."""
    rows = [
        (each.name, f"{each.summary}. {'Installed.' if each.installed else f'Install: {each.install}'}")
        for each in available()
    ]
    return [
        *rows,
        ("llamacpp:/path/model.gguf", "Any GGUF file."),
        ("llamacpp:hf:OWNER/REPO:FILE", "A file of the hub, fetched with huggingface_hub (extra: hf)."),
    ]


def default_model(environ: Mapping[str, str]) -> tuple[int, str, str] | None:
    """The first packaged model whose weights are installed, or None."""
    for each in available():
        if each.installed:
            return _PRIORITY, each.name, "its weights are installed, and no provider's key is in the environment"
    return None
