"""The two ways to a server: a process of our own, and an address. What a process says on the side is kept."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from locus_plugin_mcp.sanitize import clean_text, shorten
from locus_plugin_mcp.settings import HeaderUnusable, check_header
from locus_wire.encodings import ACCEPTED, unpack_within_bounds

if TYPE_CHECKING:
    from locus_plugin_mcp.settings import ServerSettings

__all__ = ["LastWords", "to_server"]

#: How much of what a server writes to its standard error is kept, in bytes.
_KEPT = 4_000
#: How many secrets are looked for in what a server says.
_TOKENS = 64
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
        #: The secrets that the server was given and may repeat; of a token that expires, the newest.
        self._secrets: deque[str] = deque(maxlen=_TOKENS)
        for secret in secrets:
            self.add_secret(secret)
        self._chunks: deque[bytes] = deque()
        self._size = 0
        #: The first line of its output that was not a message.
        self.garbage = ""
        #: Of the newest answer over HTTP; 0 = none yet.
        self.status = 0

    def add_secret(self, secret: str) -> None:
        """Never show this text."""
        if len(secret) >= 4 and secret not in self._secrets:
            self._secrets.append(secret)

    def hide(self, text: str) -> str:
        """A text of the server without the secrets that it was given."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

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
            said.append(f"; its output is not MCP: {shorten(self.hide(self.garbage))}")
        if self.status >= 300:
            said.append(f"; it answered with the HTTP status {self.status}{_REMEDIES.get(self.status, '')}")
        return "".join(said)

    @property
    def whole(self) -> str:
        """All that is kept of its standard error, line by line, without the secrets that it was given."""
        return clean_text(self.hide(b"".join(self._chunks).decode("utf-8", "replace").strip()), _KEPT)

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
    # How long a call may take is the call's own matter; a stream may say nothing for as long.
    times = httpx2.Timeout(server.connect_timeout, read=None)
    # A plain address is asked directly, whatever proxy the environment names: a proxy would read the headers.
    secure = httpx2.URL(str(server.url)).scheme == "https"
    hooks = {"response": [words.record_status, unpack_within_bounds]}
    async with (
        httpx2.AsyncClient(
            headers=ACCEPTED, auth=_Headers(server, words), timeout=times, trust_env=secure, event_hooks=hooks
        ) as client,
        streamable_http_client(str(server.url), http_client=client, max_sse_event_size=_EVENT) as streams,
    ):
        yield streams


class _Headers(httpx2.Auth):
    """The headers of a server: computed for each request, and sent to no other server."""

    def __init__(self, server: ServerSettings, words: LastWords) -> None:
        self._headers, self._words = server.headers, words
        self._origin = _origin(httpx2.URL(str(server.url)))

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Add them."""
        if _origin(request.url) == self._origin:
            for name, secret in self._headers.items():
                try:
                    text = await secret.areveal()  # type: ignore[union-attr]
                except Exception as e:
                    what = f"the function of the header {name!r} failed: {type(e).__name__}: {self._words.hide(str(e))}"
                    raise HeaderUnusable(what) from e
                self._words.add_secret(text)
                check_header(name, text)
                request.headers[name] = text
        yield request


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@asynccontextmanager
async def _process(server: ServerSettings, words: LastWords) -> AsyncIterator[Any]:
    parameters = StdioServerParameters(
        command=str(server.command),
        args=list(server.args),
        env={name: await secret.areveal() for name, secret in server.env.items()},  # type: ignore[union-attr]
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
