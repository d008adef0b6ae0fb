"""A provider of one's own, whole: ``acme:NAME`` at a server that speaks Chat Completions.

`locus plugin new acme --kind model` writes everything around it (manifest, settings, package, tests); this is the
module to put in the place of its `model.py`. What it leaves to `locus_wire` are connections, keys, deadlines, and one
typed error for whatever a server may do.
"""

from __future__ import annotations

from attrs import frozen

from locus.models import ModelRequest, ModelResponse, OnChunk
from locus.plugins import Secret
from locus_wire import chat_completions
from locus_wire.client import Client, Endpoint
from locus_wire.keys import Key
from locus_wire.options import Options
from locus_wire.pools import Session


@frozen(kw_only=True)
class AcmeSettings:
    """Where the server is, and the key for it; ``ACME_API_KEY`` when it is not set."""

    base_url: str = "https://api.acme.example/v1"
    api_key: Secret | None = None


class AcmeModel:
    """One model of the server, for any number of runs at a time."""

    def __init__(self, model: str, settings: AcmeSettings) -> None:
        self.name = f"acme:{model}"
        key = Key(provider="acme", given=settings.api_key, env=("ACME_API_KEY",))
        self._client = Client(Endpoint.with_key(key, settings.base_url))
        self._options = Options(provider="acme", model=model)

    def session(self) -> Session:
        """Keeps connections open during a run."""
        return self._client.session()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request; see `locus.models.Model.complete`."""
        return await chat_completions.ask(self._client, "/chat/completions", request, self._options, on_chunk)


def make(model: str, settings: AcmeSettings) -> AcmeModel:
    """The model behind ``acme:NAME``."""
    return AcmeModel(model, settings)
