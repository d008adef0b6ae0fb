"""One model call over a wire form: the body is posted, and the answer read whole or as it streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from locus.models import ModelRequest, ModelResponse
from locus_wire.client import Client
from locus_wire.streams import Event

__all__ = ["StreamedAnswer", "exchange"]


class StreamedAnswer(Protocol):
    """Puts together the answer of a stream, and shows its pieces."""

    async def take(self, event: Event) -> bool:
        """Add an event; True when it completes the answer."""
        ...

    def is_complete(self) -> bool:
        """Whether the answer is complete although the stream ended without a last event."""
        ...

    def response(self) -> ModelResponse:
        """The whole answer."""
        ...


async def exchange(
    client: Client,
    path: str,
    body: bytes,
    request: ModelRequest,
    *,
    read: Callable[[Any], ModelResponse],
    streamed: StreamedAnswer | None,
) -> ModelResponse:
    """Ask a server once.

    Args:
        client: of the server.
        path: below its ``base_url``.
        body: the request in the wire form.
        request: for its deadline.
        read: makes the response of an answer that comes whole.
        streamed: takes the events of an answer that streams; None = it comes whole.

    Raises:
        ModelError: see `locus_wire.errors`.
    """
    if streamed is None:
        return await client.post(path, body, read, deadline=request.deadline)
    await client.events(path, body, streamed.take, deadline=request.deadline, ended=streamed.is_complete)
    return streamed.response()
