"""`AnthropicModel`: the kernel's Model protocol over the Messages API."""

from __future__ import annotations

from typing import Any

import anyio

from locus.core.errors import ConfigError, ModelError, closest
from locus.core.messages import Usage
from locus.models import Chunk, ModelRequest, ModelResponse, OnChunk
from locus_kit.origins import Origin
from locus_plugin_anthropic.blocks import NAME, Wire
from locus_plugin_anthropic.body import body_of
from locus_plugin_anthropic.output import OutputPlan
from locus_plugin_anthropic.reply import check_message, response_of, usage_of
from locus_plugin_anthropic.server import client_of, list_models
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_plugin_anthropic.stream import Stream
from locus_wire import Malformed, json_bytes
from locus_wire.errors import NotFound
from locus_wire.pools import Session

__all__ = ["AnthropicModel", "make"]

_PATH = "/v1/messages"

#: From here on an answer may take longer than the ten minutes after which idle connections are cut, so it is streamed
#: although nothing listens (the official clients do it the same way).
_LONG = 21_333

#: How often a turn that the server has paused is gone on with.
_PAUSES = 10

#: Seconds that a list may take which only helps to explain a failure.
_PATIENCE = 10.0

#: What counting tokens takes of a request.
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")


def make(name: str, settings: AnthropicSettings | None = None) -> AnthropicModel:
    """The model behind ``anthropic:NAME``; nothing is sent before the first request.

    Args:
        name: as the provider calls it, such as ``"claude-sonnet-5-5"``.
        settings: None = the defaults.

    Raises:
        ConfigError: the name is missing, or the address is invalid.
    """
    if not name.strip():
        raise ConfigError("'anthropic:' has no model name; write 'anthropic:NAME', with one that `locus models` lists")
    return AnthropicModel(name, settings or AnthropicSettings())


class AnthropicModel:
    """A model behind the Messages API. One instance serves any number of runs at a time.

    Args:
        name: as the provider calls it.
        settings: where it is and how it is asked.
    """

    def __init__(self, name: str, settings: AnthropicSettings) -> None:
        self._model, self._settings = name, settings
        self._client = client_of(settings)
        self._origin = Origin.of(NAME, settings.base_url, name)

    def __repr__(self) -> str:
        return f"<AnthropicModel {self._model!r}>"

    @property
    def name(self) -> str:
        """``"anthropic:"`` and the provider's name of the model."""
        return f"{NAME}:{self._model}"

    @property
    def address(self) -> str:
        """Where requests go, without a path and a password."""
        return self._client.address

    def check_ready(self) -> None:
        """Find out before the first request whether there is a key.

        Raises:
            KeyMissing: no key was found.
        """
        self._client.check_key()

    def session(self) -> Session:
        """An async context manager that keeps connections open for the calls within."""
        return self._client.session()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request; see `locus.models.Model.complete`.

        Raises:
            ModelError: see `locus_wire.errors`.
            InputError: the conversation holds media that the API does not take.
        """
        readable, notes = self._origin.read(request)
        body, asked = body_of(readable, self._model, self._settings)
        try:
            return self._origin.sign(await self._read_answer(body, asked, on_chunk), notes)
        except NotFound as e:
            await self._add_nearest(e, request.deadline)
            raise

    async def count_tokens(self, request: ModelRequest) -> int:
        """How many tokens the prompt of a request has, by the server's count.

        Raises:
            ModelError: see `locus_wire.errors`.
            InputError: the conversation holds media that the API does not take.
        """
        body, _ = body_of(self._origin.read(request)[0], self._model, self._settings)
        counted = json_bytes({key: body[key] for key in _COUNTED if key in body})
        return await self._client.post(f"{_PATH}/count_tokens", counted, _count, deadline=request.deadline)

    async def _read_answer(self, body: Wire, asked: OutputPlan, on_chunk: OnChunk | None) -> ModelResponse:
        usage, held, raw = Usage(), list[Any](), dict[int, str]()
        deadline = asked.request.deadline
        messages = body["messages"]
        for again in range(_PAUSES + 1):
            stream = Stream(on_chunk, asked.tool)
            try:
                data = await self._ask(body, stream, deadline, listening=on_chunk is not None)
            except ModelError as e:
                spent = usage + usage_of(stream.message)
                if e.usage is None and spent.total_tokens:
                    e.usage = spent
                raise
            usage += usage_of(data)
            raw |= {at + len(held): text for at, text in stream.raw.items()}
            held += data["content"]
            if data.get("stop_reason") != "pause_turn" or not data["content"] or again == _PAUSES:
                break
            body = {**body, "messages": [*messages, {"role": "assistant", "content": list(held)}]}
        response = asked.read(response_of({**data, "content": held}, raw, usage, name=self._model))
        if on_chunk is not None and asked.tool is not None and response.message.text:
            await on_chunk(Chunk(response.message.text))
        return response

    async def _ask(self, body: Wire, stream: Stream, deadline: float | None, *, listening: bool) -> Wire:
        if not listening and body["max_tokens"] < _LONG:
            return await self._client.post(_PATH, json_bytes(body), check_message, deadline=deadline)
        await self._client.events(_PATH, json_bytes({**body, "stream": True}), stream.take, deadline=deadline)
        return stream.message

    async def _add_nearest(self, error: NotFound, deadline: float | None) -> None:
        """Say which model was meant, as far as the server lists what it has."""
        if error.code != "not_found_error":
            return  # no server of this protocol: the address is wrong
        try:
            soon = anyio.current_time() + _PATIENCE
            known = [each.name for each in await list_models(self._client, min(soon, deadline or soon))]
        except ModelError:
            return
        near = closest(self._model, known)
        if near is not None and self._model not in known:
            error.args = (f"{error.args[0]}; did you mean {NAME}:{near}?",)


def _count(data: Any) -> int:
    if not isinstance(found := data["input_tokens"], int):
        raise Malformed(f"the count of tokens must be an int, got {found!r:.40}")
    return found
