"""What ``locus models`` shows of this plugin: what the server has, or how to get a server and a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import anyio
from attrs import evolve

from locus_plugin_ollama.address import address
from locus_plugin_ollama.errors import PROVIDER
from locus_plugin_ollama.model import client_of
from locus_plugin_ollama.settings import OllamaSettings
from locus_plugin_ollama.tags import Tag, tags_of
from locus_wire import Client
from locus_wire.errors import TooLate, Unreachable

__all__ = ["models"]

#: Seconds that the server gets; a list must not keep anybody waiting.
_PATIENCE = 3.0


def models(settings: OllamaSettings | None, environ: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """The models of the server with a note each; one line that says what to do if it has none.

    Args:
        settings: None = the defaults.
        environ: where ``OLLAMA_HOST`` may be; the process's environment when None.

    Raises:
        ModelError: the answer is not the expected one; a missing server is not an error.
    """
    own = settings or OllamaSettings()
    place = address(own.base_url, os.environ if environ is None else environ)
    client = client_of(evolve(own, timeout=_PATIENCE, connect_timeout=min(own.connect_timeout, 1.0)), place)
    try:
        # The asker may be on an event loop, where no other one can be run.
        with ThreadPoolExecutor(1) as pool:
            tags = pool.submit(anyio.run, _fetch, client).result()
    except (Unreachable, TooLate):
        start = "start one: ollama serve" if place.here else "is it running?"
        return [("NAME", f"No server answers at {place.url}; {start} (OLLAMA_HOST or base_url says where).")]
    if not tags:
        return [("NAME", f"The server at {place.url} has no models; get one: ollama pull NAME")]
    return [(f"{PROVIDER}:{tag.name}", f"{tag.note}." if tag.note else "") for tag in tags]


async def _fetch(client: Client) -> list[Tag]:
    return await client.get("/api/tags", tags_of)
