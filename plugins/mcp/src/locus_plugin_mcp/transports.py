"""The two ways to a server: a process of our own, and an address. What a process says on the side is kept."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from locus_plugin_mcp.sanitize import clean_text, shorten
from locus_wire.encodings import ACCEPTED, unpack_within_bounds

if TYPE_CHECKING:
    from locus_plugin_mcp.settings import ServerSettings

__all__ = ["LastWords", "to_server"]

#: How much of what a server writes to its standard error is kept, in bytes.
_KEPT = 4_000
#: Bytes of one event of a stream: an image comes in one.
_EVENT = 32 * 2**20

#: What to do about a status, where that is known.
_REMEDIES = {
    401: ": give it a key in headers",
    403: ": the key in headers is missing, or is not allowed to do that",
    404: ": compare the url with its documentation",
}


class LastWords:
    """The end of a server's output outside the protocol."""

    __slots__ = ("_chunks", "_secrets", "_size", "garbage", "status")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        #: What the server was given and may repeat.
        self._secrets = tuple(secret for secret in secrets if len(secret) >= 4)
        self._chunks: deque[bytes] = deque()
        self._size = 0
        #: The first line of its output that was not a message.
        self.garbage = ""
        #: Of the newest answer over HTTP; 0 = none yet.
        self.status = 0

    async def record_status(self, response: httpx2.Response) -> None:
        """Keep the status of an answer."""
        self.status = response.status_code

    def add(self, chunk: bytes) -> None:
        """Keep a chunk, and of all of them only the end."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) > _KEPT:
            self._size -= len(self._chunks.popleft())

    def __str__(self) -> str:
        said = [f"; the end of its stderr: {words}"] if (words := shorten(self._tail())) else []
        if self.garbage:
            said.append(f"; its output is not MCP: {shorten(self.garbage)}")
        if self.status >= 300:
            said.append(f"; it answered with the HTTP status {self.status}{_REMEDIES.get(self.status, '')}")
        return "".join(said)

    @property
    def whole(self) -> str:
        """All that is kept of its standard error, line by line, without the secrets that it was given."""
        text = b"".join(self._chunks).decode("utf-8", "replace").strip()
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return clean_text(text, _KEPT)

    def _tail(self) -> str:
        return " / ".join(self.whole.splitlines()[-3:])[-300:]


@asynccontextmanager
async def to_server(server: ServerSettings, words: LastWords) -> AsyncIterator[Any]:
    """The transport to a server: a pair of streams of messages.

    Args:
        server: what to start or to reach.
        words: gets what a process says on the side.
    """
    if server.command is not None:
        async with _process(server, words) as streams:
            yield streams
        return
    headers = {name: secret.reveal() for name, secret in server.headers.items()}  # type: ignore[union-attr]
    # How long a call may take is the call's own matter; a stream may say nothing for as long.
    times = httpx2.Timeout(server.connect_timeout, read=None)
    # A plain address is asked directly, whatever proxy the environment names: a proxy would read the headers.
    secure = httpx2.URL(str(server.url)).scheme == "https"
    hooks = {"response": [words.record_status, unpack_within_bounds]}
    async with (
        httpx2.AsyncClient(
            headers={**ACCEPTED, **headers}, timeout=times, trust_env=secure, event_hooks=hooks
        ) as client,
        streamable_http_client(str(server.url), http_client=client, max_sse_event_size=_EVENT) as streams,
    ):
        yield streams


@asynccontextmanager
async def _process(server: ServerSettings, words: LastWords) -> AsyncIterator[Any]:
    parameters = StdioServerParameters(
        command=str(server.command),
        args=list(server.args),
        env={name: secret.reveal() for name, secret in server.env.items()},  # type: ignore[union-attr]
        cwd=server.cwd,
        encoding_error_handler="replace",
    )
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        async with anyio.create_task_group() as group:
            with os.fdopen(writing, "w", encoding="utf-8") as side:
                transport = stdio_client(parameters, errlog=side)
                streams = await transport.__aenter__()
            # Ours is closed now, the server's own is not: it reads as ended when the server has ended.
            group.start_soon(_listen, reading, words)
            try:
                yield streams
            finally:
                await transport.__aexit__(None, None, None)
                group.cancel_scope.cancel()
    finally:
        os.close(reading)


async def _listen(reading: int, words: LastWords) -> None:
    while True:
        await anyio.wait_readable(reading)
        try:
            chunk = os.read(reading, 65_536)
        except BlockingIOError:
            continue
        if not chunk:
            return
        words.add(chunk)
