"""Chat of OCI Generative AI in its own form: the envelope, which is the same for every family of models.

Source: the Generative AI Inference API, version 20231130, the operation Chat. Inside the envelope speaks a family
(`Family`): GENERIC, which is close to OpenAI's Chat Completions, or COHERE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import evolve, frozen

from locus.core.messages import Usage
from locus.models import Chunk, ModelRequest, ModelResponse, OnChunk
from locus_wire.bodies import json_bytes
from locus_wire.client import Client
from locus_wire.exchange import exchange
from locus_wire.streams import ErrorInAnswer, Event, Malformed, check_shape, json_of
from locus_wire.usage import count, usage

__all__ = ["PATH", "Family", "Gathering", "Target", "ask", "usage_of"]

PATH = "/20231130/actions/chat"


@frozen(kw_only=True)
class Target:
    """Which model, and who pays.

    Args:
        model: its name, the OCID of a model, or the OCID of a dedicated endpoint.
        compartment: OCID of the compartment.
    """

    model: str
    compartment: str

    @property
    def serving(self) -> dict[str, str]:
        """How a request names the model: by its dedicated endpoint, if it has one."""
        if self.model.startswith("ocid1.generativeaiendpoint."):
            return {"servingType": "DEDICATED", "endpointId": self.model}
        return {"servingType": "ON_DEMAND", "modelId": self.model}


class Gathering(Protocol):
    """The pieces of an answer, put together into the whole that it would have been."""

    def take(self, piece: Mapping[str, Any]) -> list[Chunk]:
        """Add a piece; returns the new chunks."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the piece was there that says why the model stopped."""
        ...

    @property
    def has_usage(self) -> bool:
        """Whether the piece was there that says what it cost."""
        ...

    def whole(self) -> Mapping[str, Any]:
        """The answer as if it had come in one piece."""
        ...


class Family(Protocol):
    """A form of requests and answers."""

    def request(self, request: ModelRequest, model: str, *, stream: bool) -> bytes:
        """The JSON of the chat request."""
        ...

    def response(self, data: Mapping[str, Any]) -> ModelResponse:
        """The response that an answer is; its model is filled in later."""
        ...

    def gathering(self) -> Gathering:
        """For one stream."""
        ...


async def ask(
    client: Client, request: ModelRequest, target: Target, family: Family, on_chunk: OnChunk | None = None
) -> ModelResponse:
    """One model call.

    Args:
        client: of the service.
        request: what to ask.
        target: whom.
        family: in which form.
        on_chunk: see `locus.models.Model.complete`.

    Raises:
        ModelError: see `locus_wire.errors`.
        InputError: the request holds what the form has no place for.
    """
    inner = family.request(request, target.model, stream=on_chunk is not None)
    envelope = json_bytes({"compartmentId": target.compartment, "servingMode": target.serving})
    body = envelope[:-1] + b',"chatRequest":' + inner + b"}"
    streamed = None if on_chunk is None else _StreamedAnswer(family, target, on_chunk)
    return await exchange(
        client, PATH, body, request, read=lambda data: _response(data, family, target), streamed=streamed
    )


def _response(data: Mapping[str, Any], family: Family, target: Target) -> ModelResponse:
    # A stream does not say which model it is from, so both name the model that was asked for.
    return evolve(family.response(data["chatResponse"]), model=target.model)


class _StreamedAnswer:
    def __init__(self, family: Family, target: Target, on_chunk: OnChunk) -> None:
        self._family, self._target, self._on_chunk = family, target, on_chunk
        self._pieces = family.gathering()
        self._response: ModelResponse | None = None

    async def take(self, event: Event) -> bool:
        """Take one event; True with the last."""
        if event.data.strip() == "[DONE]":
            if not self.is_complete():
                raise Malformed("the stream ended without a reason why the model stopped")
            return True
        data = json_of(event.data)
        if "code" in data and isinstance(data.get("message"), str):
            raise ErrorInAnswer(data)
        with check_shape():
            heard = self._pieces.take(data)
        for chunk in heard:
            await self._on_chunk(chunk)
        return self._pieces.has_usage and self.is_complete()

    def is_complete(self) -> bool:
        """Whether the answer is complete: only the end of the connection tells."""
        if self._response is None and self._pieces.is_finished:
            with check_shape():
                whole = {"chatResponse": self._pieces.whole()}
                self._response = _response(whole, self._family, self._target)
        return self._response is not None

    def response(self) -> ModelResponse:
        """The whole."""
        if self._pieces.is_finished:
            # The usage may have come behind the reason to stop.
            self._response = None
            self.is_complete()
        assert self._response is not None
        return self._response


def usage_of(said: Any) -> Usage:
    """The tokens that the service counted."""
    return usage(
        count(said, "promptTokens"),
        count(said, "completionTokens"),
        cached=count(said, "promptTokensDetails", "cachedTokens"),
        reasoning=count(said, "completionTokensDetails", "reasoningTokens"),
    )
