"""The models of this plugin for ``locus models``: which ones exist, can be fetched, and are a default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from locus_kit.pinned import PinnedFile
from locus_plugin_llamacpp.catalogue import CATALOGUE
from locus_plugin_llamacpp.model import Available, available
from locus_plugin_llamacpp.settings import LlamaCppSettings
from locus_plugin_llamacpp.weights import models_folder

__all__ = ["default_model", "models", "pinned_files"]

#: By convention: below any provider whose key is in the environment, because a hosted model is the better one.
_PRIORITY = 10

_MEGA = 1_000_000


def models(settings: LlamaCppSettings | None) -> list[tuple[str, str]]:
    """The packaged models with a note each, and the two forms that name any other GGUF file."""
    cache_dir = None if settings is None else settings.cache_dir
    return [
        *((each.name, f"{each.summary}. {_state(each)}") for each in available(cache_dir)),
        ("llamacpp:/path/model.gguf", "Any GGUF file."),
        ("llamacpp:hf:OWNER/REPO:FILE", "A file of the hub, fetched with huggingface_hub (extra: hf)."),
    ]


def _state(model: Available) -> str:
    if model.installed:
        return "Here."
    return f"{model.size // _MEGA} MB, fetched when it is first used, or by: {model.install}"


def default_model(environ: Mapping[str, str]) -> tuple[int, str, str] | None:
    """The first packaged model whose weights are here, or None."""
    for each in available():
        if each.installed:
            return _PRIORITY, each.name, "its weights are here, and no provider's key is in the environment"
    return None


def pinned_files(settings: LlamaCppSettings | None) -> list[tuple[PinnedFile, Path]]:
    """The files of the packaged models, each with the folder that it belongs in."""
    folder = models_folder(None if settings is None else settings.cache_dir)
    return [(model.file, folder) for model in CATALOGUE.values()]
