"""Failures of the network as an HTTP library raises them, from a provider that lets them through."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from locus import Agent
from locus.core.errors import ModelError
from locus.core.messages import Message, Role
from locus.models import ModelRequest, ModelResponse
from locus_plugin_retry.transience import find_wait, may_pass, to_model_error

from .kit import Waits, collected, hook, model

pytestmark = pytest.mark.anyio


class Bare:
    """A provider as one writes it in ten lines: it asks an address, and raises what httpx raises."""

    name = "bare:one"

    def __init__(self, url: str) -> None:
        self.url, self.asked = url, 0

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        self.asked += 1
        async with httpx.AsyncClient(trust_env=False, timeout=2.0) as client:
            response = await client.get(self.url, params={"key": "SECRET"})
            response.raise_for_status()
        return ModelResponse(message=Message(Role.ASSISTANT, response.text))


def closed_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@asynccontextmanager
async def server(*answers: bytes | None) -> AsyncIterator[str]:
    """Gives one answer after the other, the last one for good; None says nothing until the client leaves."""
    left = list(answers)

    async def serve(stream: Any) -> None:
        async with stream:
            answer = left.pop(0) if len(left) > 1 else left[0]
            await stream.receive()
            if answer is None:
                await anyio.sleep(5)
            elif answer:
                await stream.send(answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{port}/"
        group.cancel_scope.cancel()
    await listener.aclose()


def answer(status: str, body: str = "", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers, "", body]
    return "\r\n".join(lines).encode()


OK = answer("200 OK", "Hi.")
BROKEN_OFF = answer("200 OK", "Hi.")[:-2]


@pytest.mark.parametrize(
    "failure",
    [b"", BROKEN_OFF, None, answer("503 Busy"), answer("429 Slow"), b"no http\r\n\r\n"],
    ids=["closed", "broken off", "late", "503", "429", "garbage"],
)
async def test_a_raw_failure_of_the_network_is_asked_again(failure: bytes | None) -> None:
    waits = Waits()
    async with server(failure, OK) as url:
        asked = Bare(url)
        result, _ = await collected(Agent(asked, hooks=[hook(waits)]))
    assert (result.text, asked.asked, result.reports["retry"].retries) == ("Hi.", 2, 1)


async def test_nobody_at_the_address_leads_to_the_fallback_and_says_so_at_the_end() -> None:
    asked = Bare(f"http://127.0.0.1:{closed_port()}/")
    result, _ = await collected(Agent(asked, hooks=[hook(Waits(), max_retries=1, fallback=[model("B", name="b:b")])]))
    assert (result.text, asked.asked) == ("B", 2)
    result, _ = await collected(Agent(asked, hooks=[hook(Waits(), max_retries=1)]))
    assert isinstance(result.error, ModelError)
    assert result.error.retryable
    assert str(result.error).startswith("bare:one failed: ConnectError")
    assert isinstance(result.error.__cause__, httpx.ConnectError)


async def test_the_wait_that_a_raw_answer_asks_for_is_kept_and_its_address_is_not_told() -> None:
    waits = Waits()
    async with server(answer("503 Busy", "", "retry-after: 7")) as url:
        result, _ = await collected(Agent(Bare(url), hooks=[hook(waits, max_retries=1, backoff=0)]))
    assert waits.total == pytest.approx(7)
    assert (getattr(result.error, "status", None), getattr(result.error, "retry_after", None)) == (503, 7)
    assert "SECRET" not in str(result.error)


@pytest.mark.parametrize("status", ["400 Bad", "401 No", "404 Gone", "501 Never"])
async def test_an_answer_that_stays_what_it_is_is_asked_for_once(status: str) -> None:
    async with server(answer(status)) as url:
        asked = Bare(url)
        await collected(Agent(asked, hooks=[hook(Waits())]))
    assert asked.asked == 1


def caused_by(make: Callable[[], Exception], cause: BaseException) -> Exception:
    made = make()
    made.__cause__ = cause
    return made


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (httpx.ReadTimeout("late"), True),
        (httpx.PoolTimeout("late"), True),
        (httpx.RemoteProtocolError("cut"), True),
        (httpx.LocalProtocolError("a header"), False),
        (httpx.UnsupportedProtocol("gopher"), False),
        (httpx.InvalidURL("what"), False),
        (httpx.TooManyRedirects("round and round"), False),
        (socket.gaierror(-3, "temporary failure in name resolution"), True),
        (ssl.SSLCertVerificationError("self-signed"), False),
        (caused_by(lambda: httpx.ConnectError("tls"), ssl.SSLCertVerificationError("self-signed")), False),
        (anyio.BrokenResourceError(), True),
        (anyio.EndOfStream(), True),
        (ExceptionGroup("both", [httpx.ReadError("a"), TimeoutError("b")]), True),
        (ExceptionGroup("one", [httpx.ReadError("a"), ValueError("b")]), False),
    ],
    ids=repr,
)
def test_what_may_pass(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes
    assert getattr(to_model_error(error, "m"), "retryable", passes) is passes


@pytest.mark.parametrize("header", ["", "soon", "nan", "-3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wait_that_is_not_a_number_is_ignored(header: str) -> None:
    request = httpx.Request("GET", "http://127.0.0.1/")
    response = httpx.Response(503, headers={"retry-after": header}, request=request)
    assert find_wait(httpx.HTTPStatusError("busy", request=request, response=response)) == 0.0
