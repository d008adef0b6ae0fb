"""`read_at_most`: the body of a response, up to a size."""

from __future__ import annotations

import httpx2
from attrs import frozen

from locus_wire.encodings import CutOff

__all__ = ["Received", "read_at_most"]


@frozen
class Received:
    """What was read of a body.

    Args:
        data: the bytes.
        is_whole: whether it is all of it.
    """

    data: bytes
    is_whole: bool = True


async def read_at_most(
    response: httpx2.Response, most: int, *, cut: bool = False, keep_part: bool = False
) -> Received | None:
    """The body of a response, or None if it is larger.

    Args:
        response: of a stream that is open.
        most: bytes.
        cut: whether the beginning of a larger one is wanted.
        keep_part: whether what came of a packed one that is cut off is wanted, if anything did.

    Raises:
        httpx2.HTTPError: the connection failed before, or the body is damaged.
    """
    data = bytearray()
    is_open = is_whole = True
    # It goes on to the end of the stream, which comes at once when the connection is closed: what lies below are
    # generators around generators, which trio wants exhausted.
    try:
        async for piece in response.aiter_bytes():
            if is_open:
                data += piece
                if len(data) > most:
                    is_open = False
                    await response.aclose()
    except CutOff:
        if is_open and not (keep_part and data):
            raise
        is_whole = False
    except httpx2.HTTPError:
        if is_open:
            raise
    if is_open:
        return Received(bytes(data), is_whole)
    return Received(bytes(data[:most]), is_whole=False) if cut else None
