"""`read_at_most`: the body of a response, up to a size."""

from __future__ import annotations

import httpx2

__all__ = ["read_at_most"]


async def read_at_most(response: httpx2.Response, most: int, *, cut: bool = False) -> bytes | None:
    """The body of a response, or None if it is larger.

    Args:
        response: of a stream that is open.
        most: bytes.
        cut: whether the beginning of a larger one is wanted.

    Raises:
        httpx2.HTTPError: the connection failed before.
    """
    data = bytearray()
    is_open = True
    # It goes on to the end of the stream, which comes at once when the connection is closed: what lies below are
    # generators around generators, which trio wants exhausted.
    try:
        async for piece in response.aiter_bytes():
            if is_open:
                data += piece
                if len(data) > most:
                    is_open = False
                    await response.aclose()
    except httpx2.HTTPError:
        if is_open:
            raise
    if is_open:
        return bytes(data)
    return bytes(data[:most]) if cut else None
