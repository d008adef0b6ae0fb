"""Tools of an MCP server beside all other add-ons: they are tools like any other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.together.test_all import ADDONS, CARD_PART, Cast

import locus_plugin_timetravel as timetravel
from locus import Agent, ToolCompleteEvent
from locus.core.messages import Message, Role, ToolCall, Usage
from locus.journal import MemoryStore
from locus.models import ModelRequest, ModelResponse

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[2] / "plugins" / "mcp" / "tests" / "raw_server.py"
CARD = "card 4111 1111 1111 1111"


class Caller(Cast):
    """Calls the server's tool, then answers."""

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        asked = not any(message.role is Role.TOOL for message in request.messages)
        if request.purpose != "think" or not asked:
            return await super().complete(request, on_chunk)
        return ModelResponse(
            message=Message(Role.ASSISTANT, (ToolCall("c1", "raw__echo", {"words": f"order 4711, {CARD}"}),)),
            usage=Usage(prompt_tokens=100, completion_tokens=10),
        )


async def test_a_servers_tool_is_filtered_voted_on_recorded_and_replayed_as_any_other() -> None:
    server = {"command": sys.executable, "args": ["-S", "-E", str(SERVER), json.dumps({"names": ["echo"]})]}
    addons: dict[str, Any] = {**ADDONS, "mcp": {"servers": {"raw": server}}, "verifier": False}
    store, cast = MemoryStore(), Caller()
    agent = Agent(cast, checkpointer=store, max_iterations=4, **addons)
    events = [event async for event in agent.run("What does order 4711 cost?", thread_id="t")]

    [done] = [event for event in events if isinstance(event, ToolCompleteEvent)]
    assert (done.tool_name, done.error) == ("raw__echo", None)
    assert "order 4711" in str(done.result)
    assert not CARD_PART.search(repr([event for event in events if event.type != "run_start"]))
    assert cast.asked["steering"] == 1
    assert (await timetravel.replay(agent, "t")).raise_for_difference().ok
