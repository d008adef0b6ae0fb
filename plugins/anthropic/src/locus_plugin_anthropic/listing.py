"""What ``locus models`` shows of this plugin, and what it offers as a default."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from locus_plugin_anthropic.blocks import NAME
from locus_plugin_anthropic.server import ListedModel, client_of, key_is_known, list_models
from locus_plugin_anthropic.settings import KEY, TOKEN, AnthropicSettings

__all__ = ["default_model", "models"]

#: By convention: a provider whose key is in the environment.
_PRIORITY = 100

_DEFAULT = "claude-sonnet-5-5"

#: Seconds that a list may take.
_PATIENCE = 10.0


def models(settings: AnthropicSettings | None) -> list[tuple[str, str]]:
    """The models that the server lists, or how to see them.

    Raises:
        ModelError: the server cannot be asked.
    """
    own = settings or AnthropicSettings()
    if own.at_anthropic and not key_is_known(own):
        return [(f"{NAME}:MODEL", f"Such as {_DEFAULT}. Set {KEY} to see what your key may use.")]
    return [(f"{NAME}:{each.name}", each.note) for each in anyio.run(_fetch, own)]


def default_model(environ: Mapping[str, str]) -> tuple[int, str, str] | None:
    """A model if a key is in the environment, else None."""
    found = next((name for name in (KEY, TOKEN) if environ.get(name, "").strip()), None)
    return None if found is None else (_PRIORITY, f"{NAME}:{_DEFAULT}", f"{found} is in the environment")


async def _fetch(own: AnthropicSettings) -> list[ListedModel]:
    return await list_models(client_of(own), anyio.current_time() + _PATIENCE)
