"""Packed answers: one layer, piece by piece, within bounds."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest

from locus_testkit.localserver import Answer, LocalServer
from locus_wire import Client, Endpoint, Event
from locus_wire.encodings import CutOff, unpack_within_bounds
from locus_wire.errors import BadAnswer, RateLimited
from locus_wire.pools import http_client

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer(lambda _: Answer.of({})) as server:
        yield server


def client(server: LocalServer) -> Client:
    return Client(Endpoint(provider="acme", base_url=f"{server.url}/v1"))


def itself(data: Any) -> Any:
    return data


def headerless(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


class _Arrived(httpx2.AsyncByteStream):
    """A body of which all bytes are there: whoever reads it does not wait."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def unpacked(pieces: list[bytes], given: list[bytes] | None = None) -> bytes:
    """What the pieces of a body unpack to; they are in ``given`` also if they end in an error."""
    given = [] if given is None else given
    request = httpx2.Request("GET", "http://localhost")
    headers = {"content-encoding": "gzip"}
    response = httpx2.Response(200, headers=headers, stream=_Arrived(*pieces), request=request)
    await unpack_within_bounds(response)
    async for piece in response.aiter_bytes():
        given.append(piece)
    return b"".join(given)


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", headerless)],
)
async def test_one_layer_is_unpacked(server: LocalServer, coding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b'{"text": "%s"}' % (b"abc" * 100_000))
    pieces = [packed[at : at + 7] for at in range(0, len(packed), 7)]
    server.answering = lambda _: Answer(body=pieces, headers={"content-encoding": coding})
    assert (await client(server).get("/", itself))["text"] == "abc" * 100_000
    assert server.received[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("size", [1, 2, 7, 100_000])
@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(b'{"text": ') + gzip.compress(b'"%s"}' % (b"abc" * 100_000)),
        gzip.compress(b"") * 50 + gzip.compress(b'{"text": "%s"}' % (b"abc" * 100_000)) + gzip.compress(b""),
        gzip.compress(b'{"text": "') + b"\0" * 999 + gzip.compress(b"abc" * 100_000) + gzip.compress(b'"}') + b"\0" * 9,
        gzip.compress(b'{"text": "%s"}' % (b"abc" * 100_000)) + b"\0\0garbage" + gzip.compress(b"dropped"),
        gzip.compress(b'{"text": "%s"}' % (b"abc" * 100_000)) + b"\x1f\x8b with another method",
        zlib.compress(b'{"text": "%s"}' % (b"abc" * 100_000)) + gzip.compress(b"dropped"),
        headerless(b'{"text": "%s"}' % (b"abc" * 100_000)) + b"\0garbage",
    ],
    ids=["two members", "empty members", "padded", "garbage", "no member", "zlib", "headerless"],
)
async def test_members_are_read_one_after_the_other_and_what_follows_is_dropped(packed: bytes, size: int) -> None:
    pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
    assert await unpacked(pieces) == b'{"text": "%s"}' % (b"abc" * 100_000)


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, headerless], ids=["gzip", "zlib", "headerless"])
async def test_a_body_that_is_cut_off_gives_what_came_of_it_and_an_error(
    pack: Callable[[bytes], bytes], size: int
) -> None:
    text = " ".join(map(str, range(5_000))).encode()
    packed = pack(text)
    assert await unpacked([]) == b""
    for left in (1, 2, 9, len(packed) // 2, len(packed) - 1):
        given: list[bytes] = []
        with pytest.raises(CutOff, match=f"cut off after {left:,} packed bytes"):
            await unpacked([packed[at : min(at + size, left)] for at in range(0, left, size)], given)
        assert text.startswith(b"".join(given))
        assert left < 10 or given


@pytest.mark.parametrize("extra", [b"\x1f", b"\x1f\x8b", gzip.compress(b"more")[:-1]], ids=["one byte", "two", "most"])
async def test_a_member_that_is_cut_off_is_an_error_too(extra: bytes) -> None:
    given: list[bytes] = []
    with pytest.raises(CutOff):
        await unpacked([gzip.compress(b"all of it ") + extra], given)
    assert b"".join(given).startswith(b"all of it ")


async def test_an_answer_that_is_cut_off_is_a_bad_one(server: LocalServer) -> None:
    # Without the last bytes the JSON is complete, and nothing says whether it is what was sent.
    packed = gzip.compress(b'{"text": "abc"}')
    for left in (4, 8, 12):
        server.answering = lambda _, n=left: Answer(body=packed[:-n], headers={"content-encoding": "gzip"})
        with pytest.raises(BadAnswer, match="cannot be unpacked: it is cut off after") as caught:
            await client(server).get("/", itself)
        assert caught.value.retryable
    assert server.wait_until_idle()


async def test_a_stream_that_is_cut_off_behind_its_last_event_is_complete(server: LocalServer) -> None:
    packed = gzip.compress(b'{"n": 1}\n{"n": 2}\n')[:-8]
    server.answering = lambda _: Answer(
        body=packed, media_type="application/x-ndjson", headers={"content-encoding": "gzip"}
    )
    seen: list[str] = []

    async def take(event: Event) -> bool:
        seen.append(event.data)
        return "2" in event.data

    await client(server).lines("/", b"{}", take)
    assert seen == ['{"n": 1}', '{"n": 2}']


async def test_an_error_whose_text_is_cut_off_is_the_error_that_its_status_says(server: LocalServer) -> None:
    packed = gzip.compress(b'{"error": {"message": "slow down"}}')[:-8]
    server.answering = lambda _: Answer(status=429, body=packed, headers={"content-encoding": "gzip"})
    with pytest.raises(RateLimited, match="slow down"):
        await client(server).get("/", itself)


async def test_members_together_are_under_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus_wire.encodings._FREE", 1_000_000)
    given: list[bytes] = []
    with pytest.raises(httpx2.DecodingError, match="unpack to more than"):
        await unpacked([gzip.compress(b" " * 500_000) * 9], given)
    assert sum(map(len, given)) <= 1_000_000


@pytest.mark.parametrize("layers", [2, 3, 5])
async def test_an_answer_in_several_layers_is_refused_before_it_is_unpacked(server: LocalServer, layers: int) -> None:
    # What follows the end of the last layer yields nothing, so no limit on an answer's size sees it.
    packed = gzip.compress(b"{}") + b"\0" * 20_000_000
    for _ in range(layers - 1):
        packed = gzip.compress(packed)
    assert len(packed) < 30_000
    server.answering = lambda _: Answer(body=packed, headers={"content-encoding": ", ".join(["gzip"] * layers)})
    with pytest.raises(BadAnswer, match=f"encoded {layers} times, expected once"):
        await client(server).get("/", itself)
    assert server.wait_until_idle()


async def test_an_encoding_that_was_not_asked_for_is_refused(server: LocalServer) -> None:
    server.answering = lambda _: Answer(body=b"{}", headers={"content-encoding": "br"})
    with pytest.raises(BadAnswer, match="must be gzip or deflate, got 'br'"):
        await client(server).get("/", itself)


async def test_a_stream_that_unpacks_to_nothing_but_blanks_is_refused(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_wire.encodings._FREE", 1_000_000)
    packed = gzip.compress(b"\n" * 10_000_000)
    server.answering = lambda _: Answer(
        body=packed, media_type="application/x-ndjson", headers={"content-encoding": "gzip"}
    )

    async def take(_: object) -> bool:
        return False

    with pytest.raises(BadAnswer, match="unpack to more than"):
        await client(server).lines("/", b"{}", take)
    assert server.wait_until_idle()


async def test_a_bomb_of_which_more_is_to_come_is_refused_as_a_bomb(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_wire.encodings._FREE", 1_000_000)
    # Far more than a socket holds, so that the connection is closed in the middle of it.
    packed = gzip.compress(b"\n" * 300_000_000, 1)
    assert len(packed) > 1_000_000
    server.answering = lambda _: Answer(
        body=[packed[i : i + 65_536] for i in range(0, len(packed), 65_536)], headers={"content-encoding": "gzip"}
    )
    with pytest.raises(BadAnswer, match="unpack to more than"):
        await client(server).get("/", itself)
    assert server.wait_until_idle()


@pytest.mark.parametrize(
    "packed", [gzip.compress(b" " * 16 * 2**20), gzip.compress(b"") * 1_000], ids=["large", "empty"]
)
async def test_other_tasks_run_while_an_answer_is_unpacked(packed: bytes) -> None:
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    response = httpx2.Response(
        200,
        headers={"content-encoding": "gzip"},
        stream=_Arrived(packed),
        request=httpx2.Request("GET", "http://localhost"),
    )
    async with http_client(secure=False, connections=1, connect_timeout=5, silence=30) as http:
        for hook in http.event_hooks["response"]:
            await hook(response)
    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        async for _ in response.aiter_bytes():
            pass
        group.cancel_scope.cancel()
    assert turns >= 32
