"""`OpenAIModel`: the kernel's Model protocol over Chat Completions or Responses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from locus.core.errors import ConfigError
from locus.models import ModelRequest, ModelResponse, OnChunk
from locus_kit.origins import Origin
from locus_plugin_openai.servers import server_of
from locus_plugin_openai.settings import OpenAISettings
from locus_wire import chat_completions, responses
from locus_wire.client import Client
from locus_wire.options import Options
from locus_wire.pools import Session

__all__ = ["OpenAIModel", "make"]


def make(name: str, settings: OpenAISettings | None = None) -> OpenAIModel:
    """The model behind ``openai:NAME``; nothing is asked before the first request.

    Args:
        name: as the server calls it; at Azure, the deployment.
        settings: None = the defaults.

    Raises:
        ConfigError: the name is missing, or the address is invalid.
    """
    return OpenAIModel(name, settings or OpenAISettings())


class OpenAIModel:
    """A model of one server. One instance serves any number of runs, threads and event loops at a time.

    Args:
        name: as the server calls it; at Azure, the deployment.
        settings: where it is and how it is asked.
    """

    def __init__(self, name: str, settings: OpenAISettings) -> None:
        if not name.strip():
            raise ConfigError("model 'openai:' has no model name; write 'openai:NAME' with a name the server knows")
        self._model = name
        server = server_of(settings)
        self._client = Client(server.endpoint)
        chat = settings.api == "chat" or (settings.api == "auto" and server.kind != "openai")
        self._ask = chat_completions.ask if chat else responses.ask
        self._path = "/chat/completions" if chat else "/responses"
        self._origin = Origin.of(f"openai.{'chat' if chat else 'responses'}", server.endpoint.base_url, name)
        if server.deployments and chat:
            self._path = f"/deployments/{quote(name, safe='')}{self._path}"
        known = server.kind != "other"
        self._options = Options(
            provider="openai",
            model=name,
            strict=known if settings.strict is None else settings.strict,
            structured=settings.structured_output,
            max_tokens=settings.max_tokens_field or ("max_completion_tokens" if known else "max_tokens"),
            stream_usage=settings.stream_usage,
            reasoning=settings.send_reasoning,
            think_tags=settings.think_tags or ("off" if known else "leading"),
            parallel=settings.parallel_tool_calls,
            store=settings.store,
            fields=_reasoning(settings, chat=chat),
        )

    @property
    def name(self) -> str:
        """``"openai:"`` and what was asked for."""
        return f"openai:{self._model}"

    @property
    def address(self) -> str:
        """Where requests go, without a path and a password."""
        return self._client.address

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, {self._client!r})"

    def check_ready(self) -> None:
        """Find out before the first request whether there is a key.

        Raises:
            KeyMissing: no key was found.
        """
        self._client.check_key()

    def session(self) -> Session:
        """Keeps connections open while it is entered."""
        return self._client.session()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request; see `locus.models.Model.complete`.

        Raises:
            ModelError: see `locus_wire.errors`.
            InputError: the request holds what the server cannot be sent.
        """
        asked, notes = self._origin.read(request)
        response = await self._ask(self._client, self._path, asked, self._options, on_chunk)
        return self._origin.sign(response, notes)


def _reasoning(settings: OpenAISettings, *, chat: bool) -> dict[str, Any]:
    effort, summary = settings.reasoning_effort, settings.reasoning_summary
    if chat:
        return {} if effort is None else {"reasoning_effort": effort}
    said = {"effort": effort, "summary": summary}
    given = {name: value for name, value in said.items() if value is not None}
    return {"reasoning": given} if given else {}
