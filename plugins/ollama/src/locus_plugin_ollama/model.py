"""`OllamaModel`: the kernel's Model protocol over ``/api/chat``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from locus.core.errors import ConfigError
from locus.models import ModelRequest, ModelResponse, OnChunk, Price
from locus_kit.origins import Origin
from locus_plugin_ollama.address import Address, address
from locus_plugin_ollama.answers import Answer
from locus_plugin_ollama.errors import PROVIDER, ModelMissing, too_long, unreachable
from locus_plugin_ollama.request import body_of, plan
from locus_plugin_ollama.settings import OllamaSettings
from locus_plugin_ollama.tags import names_of
from locus_wire import Client, Endpoint, Event, Key, check_shape, json_of
from locus_wire.errors import ContextTooLong, NotFound, Unreachable, WireError

__all__ = ["OllamaModel", "client_of", "make"]

#: Seconds to ask the server what it has, when it has not what it was asked for.
_LOOKING = 2.0


def make(name: str, settings: OllamaSettings | None = None) -> OllamaModel:
    """The model behind ``ollama:NAME``; nothing is asked before the first request.

    Args:
        name: as the server names it, with or without a tag: ``"qwen3"``, ``"llama3.2:1b"``.
        settings: None = the defaults.

    Raises:
        ConfigError: the name is missing, or the address of the server is invalid.
    """
    if not name.strip():
        raise ConfigError("'ollama:' has no model name; write 'ollama:NAME', with one that `locus models` lists")
    return OllamaModel(name.strip(), settings or OllamaSettings())


def client_of(settings: OllamaSettings, place: Address) -> Client:
    """A client of the server.

    Args:
        settings: of the plugin.
        place: where it is.
    """
    # The key in the environment is for the hosted service: it does not travel over a network that can read it, and goes
    # to no address that only a configuration file names.
    meant = settings.base_url is None or place.host == "ollama.com" or place.host.endswith(".ollama.com")
    env = ("OLLAMA_API_KEY",) if place.here or (place.scheme == "https" and meant) else ()
    key = Key(provider=PROVIDER, given=settings.api_key, env=env, needed=False)
    endpoint = Endpoint.with_key(key, place.url).with_options(
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        silence=settings.silence,
        connections=settings.connections,
    )
    return Client(endpoint)


class OllamaModel:
    """A model of a server. It serves any number of runs at a time.

    Args:
        model: as the server names it.
        settings: where it is and how to ask.
        environ: where ``OLLAMA_HOST`` may be; the process's environment when None.
    """

    def __init__(self, model: str, settings: OllamaSettings, environ: Mapping[str, str] | None = None) -> None:
        self._model, self._settings = model, settings
        self._place = address(settings.base_url, os.environ if environ is None else environ)
        self._origin = Origin.of(PROVIDER, self._place.url, model)
        #: Asks the server.
        self.client = client_of(settings, self._place)

    def __repr__(self) -> str:
        return f"<OllamaModel {self.name!r} at {self._place.url}>"

    @property
    def name(self) -> str:
        """``"ollama:"`` and the name of the model."""
        return f"{PROVIDER}:{self._model}"

    @property
    def price(self) -> Price | None:
        """What the settings say; else nothing for a model that runs on this machine, unknown for any other."""
        if self._settings.price is not None:
            return self._settings.price
        # A server on this machine passes the models with such a name on to the hosted service.
        hosted = self._model.endswith(("-cloud", ":cloud"))
        return Price(prompt=0.0, completion=0.0) if self._place.here and not hosted else None

    def session(self) -> AbstractAsyncContextManager[Any]:
        """Keeps the connections of the calls within; see `locus.models.Model`."""
        return self.client.session()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request; see `locus.models.Model.complete`.

        Raises:
            CannotSend: the request holds what the protocol cannot say.
            ModelMissing: the server has no such model.
            ModelError: see `locus_wire.errors`.
        """
        readable, notes = self._origin.read(request)
        planned = plan(readable)
        body = body_of(planned.request, self._model, self._settings, stream=on_chunk is not None)
        answer = Answer(self._model, len(request.messages), planned.final, think_tags=self._settings.think_tags)
        try:
            if on_chunk is None:
                response = await self.client.post(
                    "/api/chat", body, lambda data: _whole(answer, data), deadline=request.deadline
                )
            else:
                response = await self._stream(answer, body, on_chunk, request.deadline)
        except NotFound as e:
            raise await self._missing(e, request.deadline) from e
        except Unreachable as e:
            raise unreachable(e, self._place.url, here=self._place.here) from e
        except ContextTooLong as e:
            raise too_long(e) from e
        return self._origin.sign(planned.read(response), notes)

    async def _stream(self, answer: Answer, body: bytes, on_chunk: OnChunk, deadline: float | None) -> ModelResponse:
        done: list[ModelResponse] = []

        async def take(event: Event) -> bool:
            line = json_of(event.data)
            with check_shape():
                chunks = answer.add(line)
                if answer.done:
                    done.append(answer.response())
            for chunk in chunks:
                await on_chunk(chunk)
            return answer.done

        await self.client.lines("/api/chat", body, take, deadline=deadline)
        return done[0]

    async def _missing(self, error: NotFound, deadline: float | None) -> NotFound:
        """The error of a model that is not there, with the names of those that are."""
        said = str(error).partition(': "')[2]
        if "model" not in said or "not found" not in said:
            return error  # it is the address that is wrong
        known: list[str] | None = None
        limit = anyio.current_time() + _LOOKING
        with contextlib.suppress(WireError):  # what went wrong first is what counts
            known = await self.client.get(
                "/api/tags", names_of, deadline=limit if deadline is None else min(limit, deadline)
            )
        return ModelMissing(self._model, self._place.url, known, error)


def _whole(answer: Answer, data: Any) -> ModelResponse:
    answer.add(data)
    return answer.response()
