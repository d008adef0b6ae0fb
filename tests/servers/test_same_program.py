"""One agent program, unchanged but for the model: in this process, and on the endpoints of a real server."""

from __future__ import annotations

from typing import Any

import pytest
from tests.servers.real import MODEL, RealServer

from locus import Agent, ModelSettings, tool
from locus.core.events import IterationEvent, ModelChunkEvent, TerminateEvent, ToolCompleteEvent
from locus.core.termination import MaxIterations
from locus.plugins.secret import Secret

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

#: The model, and the settings that lead its provider to the server at hand: a provider's name, what stands behind the
#: colon, and a function from the server to the settings.
WAYS: dict[str, tuple[str, Any]] = {
    "embedded": ("llamacpp", lambda server: {"progress": False, "n_ctx": 4096}),
    "openai-chat": ("openai", lambda server: _openai(server, "chat")),
    "openai-responses": ("openai", lambda server: _openai(server, "responses")),
    "ollama": ("ollama", lambda server: {"base_url": server.ollama}),
    "anthropic": ("anthropic", lambda server: {"base_url": server.url, "api_key": Secret(server.key)}),
}


def _openai(server: RealServer, api: str) -> dict[str, Any]:
    return {"base_url": f"{server.url}/v1", "api_key": Secret(server.key), "api": api}


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


async def program(model: str, **options: Any) -> tuple[list[str | None], list[int], TerminateEvent]:
    """The program: the results of its tools, how many pieces of each model call it heard, and its end."""
    settings = ModelSettings(temperature=0.0, max_tokens=64)
    agent: Agent[Any, Any] = Agent(model, tools=[add], termination=MaxIterations(3), model_settings=settings, **options)
    results: list[str | None] = []
    pieces: list[int] = []
    async for event in agent.run("What is 12 plus 30? Use the tool."):
        match event:
            case ToolCompleteEvent(result=result):
                results.append(result)
            case IterationEvent():
                pieces.append(0)
            case ModelChunkEvent():
                pieces[-1] += 1
            case TerminateEvent() as end:
                return results, pieces, end
    raise AssertionError("a run ends with its TerminateEvent")


@pytest.mark.parametrize("way", WAYS)
async def test_the_same_program_runs_on_every_model(real_server: RealServer, way: str) -> None:
    provider, settings = WAYS[way]
    results, pieces, end = await program(f"{provider}:{MODEL}", **{provider: settings(real_server)})
    assert results[0] == "42"
    assert 1 <= len(pieces) <= 3
    # A small model may end with an answer that says nothing, which the reason then says.
    is_empty = end.reason == "EmptyAnswer"
    assert all(pieces[:-1] if is_empty else pieces), (pieces, end.reason)
    # Ollama's protocol has calls in one piece, and the model may have done nothing but call.
    assert max(pieces) > 1 or way == "ollama", pieces
    assert is_empty or end.reason in ("NoToolCalls", "MaxIterations")
