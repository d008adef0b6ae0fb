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
from locus_wire import Client, Endpoint
from locus_wire.errors import BadAnswer
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


class _Arrived(httpx2.AsyncByteStream):
    """A body of which all bytes are there: whoever reads it does not wait."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


async def test_other_tasks_run_while_an_answer_is_unpacked() -> None:
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    packed = gzip.compress(b" " * 16 * 2**20)
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
