"""Decompresses responses within bounds: `unpack_within_bounds` is a hook of every HTTP client here.

An HTTP client decodes one content encoding after another and returns the final result. Each layer can expand a
thousandfold, and a last layer that yields nothing hides the work of the previous ones: 452 bytes in three layers keep
an event loop busy for more than a minute, while no limit on the response's size ever sees a byte. So at most one layer
is decoded, in small pieces between which other tasks run, and up to a bounded size.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator

import anyio.lowlevel
import httpx2

__all__ = ["ACCEPTED", "CutOff", "unpack_within_bounds"]

#: The encodings in Accept-Encoding: the standard library has both, and every server knows them.
ACCEPTED = {"accept-encoding": "gzip, deflate"}

#: Bytes that any answer may unpack to; above that, it must not be more than so many times as large as what came.
#: Text packs five to twenty times; a thousand is what DEFLATE reaches with nothing but zeros.
_FREE = 64 * 1024 * 1024
_MOST_TIMES = 100

#: Bytes of a piece, between which other tasks run.
_PIECE = 256 * 1024

#: Packed bytes that are looked at together.
_SLICE = 16 * 1024

#: How a member of gzip begins: RFC 1952, 2.3.1; DEFLATE is its only method.
_MEMBER = b"\x1f\x8b\x08"


async def unpack_within_bounds(response: httpx2.Response, *, free: int | None = None) -> None:
    """Have the body of a response unpacked piece by piece; ``event_hooks={"response": [unpack_within_bounds]}``.

    Args:
        response: its body was not read yet.
        free: bytes that it may unpack to however small it came; above that, at most a hundred times of what came.
            None = as many as any answer may have.

    Raises:
        httpx2.DecodingError: it is encoded more than once, or in a way that was not asked for. While the body is read:
            it is damaged, unpacks to far more than an answer, or is cut off (`CutOff`).
    """
    codings = [each.strip().lower() for each in response.headers.get("content-encoding", "").split(",")]
    codings = [each for each in codings if each not in ("", "identity")]
    if not codings:
        return
    if len(codings) > 1:
        raise httpx2.DecodingError(f"it is encoded {len(codings)} times, expected once", request=response.request)
    if codings[0] not in ("gzip", "x-gzip", "deflate"):
        raise httpx2.DecodingError(
            f"its encoding must be gzip or deflate, got {codings[0]!r:.40}", request=response.request
        )
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Unpacked(response.stream, response.request, _FREE if free is None else free)
    # What the client reads from now on is plain.
    del response.headers["content-encoding"]


class CutOff(httpx2.DecodingError):
    """The body of a response ended before what is packed in it did; what came of it was given before."""


class _Unpacked(httpx2.AsyncByteStream):
    """A packed stream, plain."""

    def __init__(self, packed: httpx2.AsyncByteStream, request: httpx2.Request, free: int) -> None:
        self._packed, self._request, self._free = packed, request, free
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        came = left = 0
        unpacker = _Unpacker()
        # What is below are generators around generators, which trio wants exhausted: so the loop goes on to their end,
        # which comes at once when the connection is closed.
        failed: httpx2.DecodingError | None = None
        try:
            async for data in self._packed:
                came += len(data)
                pieces = unpacker.pieces(data)
                while not self._closed:
                    try:
                        piece = next(pieces, None)
                    except zlib.error as e:
                        failed = httpx2.DecodingError(str(e), request=self._request)
                        await self.aclose()
                        break
                    if piece is None:
                        break
                    left += len(piece)
                    if left > self._free and left > _MOST_TIMES * came:
                        said = f"{came:,} bytes unpack to more than {left:,}"
                        failed = httpx2.DecodingError(said, request=self._request)
                        await self.aclose()
                        break
                    if piece:
                        yield piece
                    await anyio.lowlevel.checkpoint()
        except httpx2.HTTPError:
            # Where more was to come, reading on from a closed connection fails.
            if failed is None:
                raise
        if failed is None and not self._closed and not unpacker.is_at_end:
            failed = CutOff(f"it is cut off after {came:,} packed bytes", request=self._request)
        if failed is not None:
            raise failed

    async def aclose(self) -> None:
        self._closed = True
        await self._packed.aclose()


class _Unpacker:
    """gzip of one or more members, zlib's format, or DEFLATE without a header, which some servers mean by ``deflate``.

    What follows the last member is dropped, as browsers do.
    """

    def __init__(self) -> None:
        self._inner: zlib._Decompress | None = None
        #: What is not unpacked yet: the beginning of the body, or what follows a member.
        self._held = b""
        self._is_gzip = self._is_over = False

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is missing: no member is open, or begins with what came last. A body may be empty."""
        return self._is_over or (self._inner is None and not self._held)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What some bytes unpack to, in pieces between which other tasks may run; a member may give an empty one."""
        # What is left of a slice is copied for each piece and each member, so they are small.
        for at in range(0, len(data), _SLICE):
            self._held += data[at : at + _SLICE]
            while self._inner is not None or self._begin():
                piece = self._unpack()
                if piece or self._inner is None:
                    yield piece
                else:
                    break  # all that is held was used
            if self._is_over:
                self._held = b""
                return

    def _begin(self) -> bool:
        """Whether a member begins with what is held; with too little of it nothing is decided yet."""
        if self._is_over:
            return False
        if self._is_gzip:
            self._held = self._held.lstrip(b"\0")  # some pad what they pack
            if not self._held.startswith(_MEMBER):
                self._is_over = not _MEMBER.startswith(self._held)
                return False
            wbits = zlib.MAX_WBITS | 16
        else:
            if len(self._held) < 2:
                return False
            self._is_gzip = self._held.startswith(_MEMBER[:1])
            wbits = zlib.MAX_WBITS | 32 if self._has_header() else -zlib.MAX_WBITS
        self._inner = zlib.decompressobj(wbits)
        return True

    def _has_header(self) -> bool:
        # RFC 1950, 2.2: the method, the window, and a check of both bytes. Bare DEFLATE cannot begin like gzip.
        first, both = self._held[0], int.from_bytes(self._held[:2], "big")
        return self._is_gzip or (first & 0x0F == 8 and first >> 4 <= 7 and both % 31 == 0)

    def _unpack(self) -> bytes:
        assert self._inner is not None
        piece = self._inner.decompress(self._held, _PIECE)
        if self._inner.eof:
            self._held, self._inner = self._inner.unused_data, None
            self._is_over = not self._is_gzip
        else:
            self._held = self._inner.unconsumed_tail
        return piece
