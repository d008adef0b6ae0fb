"""The OpenAI-compatible transport of `oci` on a real server, behind a gate that lets through what is signed well.

llama.cpp knows no signatures: the gate checks them with the public key alone, as the service does, and puts the key
that the server wants in their place. No test here asserts a model's judgement.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugins.oci.tests.verification import Keys, unsigned_because, write_profile
from tests.servers.real import RealServer

from locus import Agent, ModelSettings, tool
from locus.core.errors import ContextOverflow
from locus.core.events import ModelChunkEvent, ModelCompleteEvent
from locus.core.termination import MaxIterations
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest
from locus_wire.errors import KeyRefused

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

COMPARTMENT = "ocid1.compartment.oc1..aaaaaaaacompartment"
GREEDY = ModelSettings(temperature=0.0, max_tokens=64)


class Gate:
    """Passes on what is signed by the key's owner; tells the service's error of everything else."""

    def __init__(self, server: RealServer, keys: Keys) -> None:
        self.server, self.keys = server, keys
        self.passed = 0

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Answer one request."""
        why = unsigned_because(self.keys, request.method, request.path, request.headers, request.body)
        if why or request.headers.get("opc-compartment-id") != COMPARTMENT:
            said = {"code": "NotAuthenticated", "message": why or "no compartment"}
            return Answer.of(said, status=401, headers={"opc-request-id": "req-1"})
        self.passed += 1
        connection = http.client.HTTPConnection(self.server.url.removeprefix("http://"))
        try:
            headers = {"content-type": "application/json", "authorization": f"Bearer {self.server.key}"}
            connection.request(request.method, request.path.removeprefix("/openai"), request.body, headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        media_type = (response.getheader("content-type") or "").partition(";")[0]
        stream = media_type == "text/event-stream"
        pieces = [event + b"\n\n" for event in body.split(b"\n\n") if event] if stream else [body]
        return Answer(status=response.status, media_type=media_type, body=pieces, chunked=stream)


@pytest.fixture
def gate(real_server: RealServer) -> Gate:
    return Gate(real_server, Keys.recorded())


@pytest.fixture
def settings(gate: Gate, tmp_path: Path) -> Iterator[dict[str, Any]]:
    with LocalServer(gate) as server:
        config = write_profile(tmp_path, gate.keys)
        yield {"endpoint": server.url, "config_file": str(config), "compartment": COMPARTMENT}


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_agent_with_a_tool_runs_on_signed_requests(
    gate: Gate, real_server: RealServer, settings: dict[str, Any], api: str
) -> None:
    """Two turns and more, streamed; each request of them was checked."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    options: dict[str, Any] = {
        "oci": {**settings, "api": api},
        "model_settings": GREEDY,
        "termination": MaxIterations(3),
    }
    agent: Agent[Any, Any] = Agent(f"oci:{real_server.model}", tools=[add], **options)
    chunks, calls = 0, 0
    async for event in agent.run("What is 12 plus 30? Use the tool."):
        chunks += isinstance(event, ModelChunkEvent)
        calls += isinstance(event, ModelCompleteEvent)
        if isinstance(event, ModelCompleteEvent):
            assert event.usage.prompt_tokens > 0
    assert chunks > 3
    assert gate.passed == calls >= 2


async def test_who_signs_with_another_key_is_refused(
    gate: Gate, real_server: RealServer, settings: dict[str, Any], tmp_path: Path
) -> None:
    config = write_profile(tmp_path, gate.keys, user="ocid1.user.oc1..somebody")
    settings = {**settings, "config_file": str(config)}
    agent: Agent[Any, Any] = Agent(f"oci:{real_server.model}", oci={**settings, "api": "chat"})
    result = await agent.run("Hi.")
    assert isinstance(result.error, KeyRefused)
    assert (result.error.code, result.error.request_id) == ("NotAuthenticated", "req-1")
    assert gate.passed == 0


async def test_a_request_that_is_too_long_says_so(
    gate: Gate, real_server: RealServer, settings: dict[str, Any]
) -> None:
    agent: Agent[Any, Any] = Agent(f"oci:{real_server.model}", oci={**settings, "api": "chat"})
    result = await agent.run("word " * (2 * real_server.window))
    assert isinstance(result.error, ContextOverflow)
    assert gate.passed == 1
