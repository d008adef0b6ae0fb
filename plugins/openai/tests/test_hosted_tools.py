"""Tools that the provider runs: they are offered beside our own, and what came of them stays as it came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from locus import Agent, ThinkEvent, tool
from locus.core import freeze
from locus.core.errors import InputError
from locus.core.events import event_from_json, event_to_json
from locus.core.messages import Message, RawBlock, Role, TextBlock
from locus.models import ModelRequest, ModelSettings
from locus_testkit.localserver import LocalServer

from .emulator import chat, responses
from .kit import FORMS, model_at

pytestmark = pytest.mark.anyio

SEARCH = {"type": "web_search", "search_context_size": "low"}
SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "locus", "new": [1]}}


@tool
def look(at: str) -> str:
    """Look.

    Args:
        at: what.
    """
    return at


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as server:
        yield server


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("own", [True, False])
async def test_hosted_tools_are_offered_beside_our_own(server: LocalServer, form: str, *, own: bool) -> None:
    says = chat if form == "chat" else responses
    server.then(says([TextBlock("Hi.")], 1, {"model": "m"}))
    settings = ModelSettings(tool_choice="auto", extras={"tools": [SEARCH, {"type": "code_interpreter"}]})
    agent = Agent(model_at(f"{server.url}/v1", form), tools=[look] if own else [], model_settings=settings)
    assert (await agent.run("Hi.")).text == "Hi."
    body = server.received[-1].json
    assert body["tools"][own:] == [SEARCH, {"type": "code_interpreter"}]
    assert len(body["tools"]) == 2 + own
    assert body["tool_choice"] == "auto"


async def test_the_call_of_a_hosted_tool_is_kept_shown_and_sent_back_as_it_came(server: LocalServer) -> None:
    made: list[Any] = [RawBlock("", SEARCHED), TextBlock("Found.")]
    server.then(responses(made, 1, {"model": "m", "stream": True}), responses([TextBlock("Well.")], 2, {"model": "m"}))
    settings = ModelSettings(extras={"tools": [SEARCH]})
    agent = Agent(model_at(f"{server.url}/v1", "responses"), model_settings=settings)
    run = agent.run("Search.")
    (thought,) = [event async for event in run if isinstance(event, ThinkEvent)]
    assert [block.data for block in thought.hosted] == [freeze(SEARCHED)]
    assert event_from_json(event_to_json(thought)) == thought
    assert run.result.text == "Found."
    await agent.run([*run.result.state.messages, Message(Role.USER, "And?")])
    assert SEARCHED in server.received[-1].json["input"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given", ["web_search", {"type": "web_search"}, ["web_search"]])
async def test_what_is_not_a_list_of_tools_is_refused(server: LocalServer, form: str, given: Any) -> None:
    request = ModelRequest(messages=(Message(Role.USER, "Hi."),), settings=ModelSettings(extras={"tools": given}))
    with pytest.raises(InputError, match="must be a list of the provider's tools"):
        await model_at(f"{server.url}/v1", form).complete(request)
    assert server.received == []
