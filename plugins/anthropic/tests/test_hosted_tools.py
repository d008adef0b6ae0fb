"""Tools that the server runs: they are offered beside our own, and what came of them stays as it came."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, ThinkEvent, tool
from locus.core import freeze
from locus.core.errors import InputError
from locus.core.events import event_from_json, event_to_json
from locus.core.messages import Message, RawBlock, Role
from locus.models import ModelRequest, ModelSettings

from .kit import Api, message_of, model_of

pytestmark = pytest.mark.anyio

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
ASKED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "locus"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x.example", "encrypted_content": "Eqg"}],
}
CITED = {"type": "text", "text": "Found.", "citations": [{"type": "web_search_result_location", "url": "https://x"}]}


@tool
def look(at: str) -> str:
    """Look.

    Args:
        at: what.
    """
    return at


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("choice", "sent"), [(None, None), ("required", {"type": "any"})])
async def test_the_tools_of_the_server_are_offered_beside_our_own(choice: str | None, sent: Any, *, own: bool) -> None:
    api = Api("Hi.")
    settings = ModelSettings(tool_choice=choice, extras={"tools": [SEARCH]})
    agent = Agent(model_of(api, cache="off"), tools=[look] if own else [], model_settings=settings)
    assert (await agent.run("Hi.")).text == "Hi."
    assert [each["name"] for each in api.bodies[0]["tools"]] == ["look"] * own + ["web_search"]
    assert api.bodies[0]["tools"][-1] == SEARCH
    assert api.bodies[0].get("tool_choice") == sent


async def test_a_tool_of_the_server_can_be_forced() -> None:
    api = Api(message_of(ASKED, FOUND, CITED))
    settings = ModelSettings(tool_choice="web_search", extras={"tools": [SEARCH]})
    await model_of(api).complete(ModelRequest(messages=(Message(Role.USER, "Hi."),), settings=settings))
    assert api.bodies[0]["tool_choice"] == {"type": "tool", "name": "web_search"}


async def test_calls_and_results_of_the_server_are_kept_shown_and_sent_back_as_they_came() -> None:
    api = Api(message_of(ASKED, FOUND, CITED), "Well.")
    agent = Agent(model_of(api, cache="off"), model_settings=ModelSettings(extras={"tools": [SEARCH]}))
    run = agent.run("Search.")
    (thought,) = [event async for event in run if isinstance(event, ThinkEvent)]
    assert [block.data for block in thought.hosted] == [freeze(ASKED), freeze(FOUND)]
    assert all(isinstance(block, RawBlock) for block in thought.hosted)
    assert event_from_json(event_to_json(thought)) == thought
    assert run.result.text == "Found."
    await agent.run([*run.result.state.messages, Message(Role.USER, "And?")])
    assert api.bodies[1]["messages"][1] == {"role": "assistant", "content": [ASKED, FOUND, CITED]}


@pytest.mark.parametrize("given", ["web_search", {"type": "web_search"}, ["web_search"]])
async def test_what_is_not_a_list_of_tools_is_refused(given: Any) -> None:
    api = Api()
    request = ModelRequest(messages=(Message(Role.USER, "Hi."),), settings=ModelSettings(extras={"tools": given}))
    with pytest.raises(InputError, match="must be a list of the provider's tools"):
        await model_of(api).complete(request)
    assert api.bodies == []
