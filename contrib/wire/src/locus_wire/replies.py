"""Reading a response: bounded, and closed in a way that leaves nothing behind on asyncio or trio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2

from locus_wire.encodings import CutOff

__all__ = ["LARGEST_ANSWER", "LARGEST_ERROR", "Body", "headers_of", "open_body"]

#: Bytes of an answer, or characters of one event of it; larger ones are refused.
LARGEST_ANSWER = 64 * 1024 * 1024

#: Bytes of an error that are read.
LARGEST_ERROR = 64 * 1024

#: Seconds that closing one response may take.
_CLOSING = 2.0


class Body:
    """A response as it arrives: its bytes, or what is read from them.

    Args:
        response: with its headers read.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.whole = False
        #: The bytes of the response, from where they were read to.
        self.data: AsyncIterator[bytes] = response.aiter_bytes()
        self._pieces: AsyncIterator[Any] = self.data

    async def peek(self, least: int) -> bytes:
        """How the body begins, behind blanks: so many bytes, or all of it. They are read again with the rest."""
        held: list[bytes] = []
        async for piece in self.data:
            held.append(piece)
            if len(b"".join(held).lstrip()) >= least:
                break
        self._pieces = self.data = _chain(held, self.data)
        return b"".join(held).lstrip()

    def read_as(self, pieces: AsyncIterator[Any]) -> None:
        """Read it as something else than bytes, from its beginning.

        Args:
            pieces: what `next` gives from now on; it reads the response.
        """
        self._pieces = pieces

    async def next(self) -> Any:
        """The next bytes, or what they are read as; None at the end."""
        async for piece in self._pieces:
            return piece
        self.whole = True
        return None

    async def upto(self, limit: int, *, may_be_cut: bool = False) -> bytes:
        """The body, or so much of it that it is longer than the limit.

        Args:
            limit: in bytes.
            may_be_cut: whether what came of a packed body that is cut off is enough.

        Raises:
            httpx2.HTTPError: the connection failed before, or the body is damaged.
        """
        pieces, size = [], 0
        try:
            while size <= limit and (data := await self.next()) is not None:
                pieces.append(data)
                size += len(data)
        except CutOff:
            if not may_be_cut:
                raise
        return b"".join(pieces)

    async def aclose(self) -> None:
        """Close it, however much of it was read."""
        if self.whole:
            return
        with anyio.move_on_after(_CLOSING, shield=True):
            await self.response.aclose()
            # The layers below are generators around generators; a closed connection ends them all, from the inside.
            # Otherwise they would be left to the garbage collector, which may not await.
            try:
                while await self.next() is not None:
                    pass
            except (httpx2.HTTPError, httpx2.StreamError, RuntimeError):
                pass


async def _chain(held: list[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for piece in held:
        yield piece
    async for piece in rest:
        yield piece


@asynccontextmanager
async def open_body(http: httpx2.AsyncClient, request: httpx2.Request) -> AsyncIterator[Body]:
    """Send a request; gives its response, and closes it in the end."""
    body = Body(await http.send(request, stream=True))
    try:
        yield body
    except GeneratorExit:
        raise  # closed from outside any event loop: nothing can be awaited
    except BaseException:
        await body.aclose()
        raise
    await body.aclose()


def headers_of(response: httpx2.Response) -> dict[str, str]:
    """Its headers by lower-case names."""
    return {name.lower(): value for name, value in response.headers.items()}
