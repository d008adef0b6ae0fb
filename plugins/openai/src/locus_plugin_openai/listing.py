"""What ``locus models`` shows of this plugin, and what it offers as a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from locus_plugin_openai.servers import server_of
from locus_plugin_openai.settings import OpenAISettings
from locus_wire.client import Client
from locus_wire.errors import KeyMissing

__all__ = ["default_model", "models"]

#: By convention: a provider whose key is in the environment.
_PRIORITY = 100

_DEFAULT = "gpt-5"

#: Seconds that a list may take.
_PATIENCE = 10.0


def models(settings: OpenAISettings | None) -> list[tuple[str, str]]:
    """The models that the server lists, with who owns each; or how to see them.

    Raises:
        ModelError: it cannot be asked, or it has no list.
    """
    server = server_of(settings or OpenAISettings())
    client = Client(server.endpoint.with_options(timeout=_PATIENCE))

    async def ask() -> list[tuple[str, str]]:
        return await client.get("/models", _rows)

    try:
        return anyio.run(ask)
    except KeyMissing as e:
        return [("openai:MODEL", f"Such as {_DEFAULT}. To see what your key may use: {str(e).partition('; ')[2]}.")]


def _rows(data: Any) -> list[tuple[str, str]]:
    rows = [(str(each["id"]), str(each.get("owned_by") or "")) for each in data["data"]]
    return [(f"openai:{name}", owner) for name, owner in sorted(rows)]


def default_model(environ: Mapping[str, str]) -> tuple[int, str, str] | None:
    """OpenAI's model, where its key is in the environment."""
    if environ.get("OPENAI_API_KEY", "").strip() and not environ.get("OPENAI_BASE_URL", "").strip():
        return _PRIORITY, f"openai:{_DEFAULT}", "OPENAI_API_KEY is in the environment"
    return None
