"""`ConversationHook`: the window of an agent that only turns the plugin on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from locus import Agent, ConfigError, Message, ModelRequest, Role, tool
from locus_plugin_conversation import ConversationHook, ConversationSettings, SlidingWindowManager
from locus_testkit import CrashingStore, ScriptedModel, SimulatedCrash, assert_valid_request, call

pytestmark = pytest.mark.anyio

PAGES = 12
SIZE = {"max_messages": 6, "slack": 2}


@tool(effect="keyed")
def read(page: int) -> str:
    """Read a page."""
    return f"page {page}"


def reader() -> ScriptedModel:
    return ScriptedModel(*[call("read", page=n) for n in range(PAGES)], "Read.")


def messages_of(requests: Sequence[ModelRequest]) -> list[tuple[Message, ...]]:
    return [request.messages for request in requests]


async def run(model: ScriptedModel, **options: Any) -> Any:
    return await Agent(model, tools=[read], system_prompt="Be brief.", **options).run("Read it all.")


async def test_turning_the_plugin_on_shows_a_window_of_the_default_size() -> None:
    model = ScriptedModel(*[call("read", page=n) for n in range(30)], "Read.")
    result = await run(model, conversation=True, max_iterations=40)
    sizes = [len(request.messages) for request in model.requests]
    # 40 messages, the system prompt before them, and the user turn that they answer.
    assert max(sizes) <= 42 < len(result.state.messages)
    for request in model.requests:
        assert_valid_request(request.messages)


async def test_the_settings_give_the_size() -> None:
    model = reader()
    result = await run(model, conversation=SIZE)
    assert max(len(request.messages) for request in model.requests) <= 8
    assert len(result.state.messages) == 2 + 2 * PAGES + 1


async def test_the_hook_shows_what_the_manager_shows() -> None:
    hooked, managed = reader(), reader()
    await run(hooked, hooks=[ConversationHook(ConversationSettings(**SIZE))])
    await run(managed, conversation_manager=SlidingWindowManager(6, slack=2))
    assert messages_of(hooked.requests) == messages_of(managed.requests)


async def test_a_short_conversation_is_sent_whole() -> None:
    model = ScriptedModel("Hello.")
    await run(model, conversation=True)
    assert [message.role for message in model.requests[0].messages] == [Role.SYSTEM, Role.USER]


async def test_the_manager_of_the_agent_comes_first() -> None:
    both, managed = reader(), reader()
    await run(both, conversation={"max_messages": 12}, conversation_manager=SlidingWindowManager(6, slack=2))
    await run(managed, conversation_manager=SlidingWindowManager(6, slack=2))
    assert messages_of(both.requests) == messages_of(managed.requests)


def next_page(request: ModelRequest) -> Any:
    """Read the page after the last one that is shown, whatever came before."""
    results = request.messages[-1].tool_results
    page = int(str(results[0].content).removeprefix("page ")) + 1 if results else 0
    return call("read", page=page) if page < PAGES else "Read."


async def test_a_run_that_is_resumed_continues_with_its_window() -> None:
    plain = ScriptedModel(next_page, after="repeat")
    await run(plain, conversation=SIZE)
    for at in (10, 15, 20):
        model, store = ScriptedModel(next_page, after="repeat"), CrashingStore(at, stored=True)
        agent = Agent(model, tools=[read], system_prompt="Be brief.", conversation=SIZE, checkpointer=store)
        with pytest.raises(SimulatedCrash):
            await agent.run("Read it all.", thread_id="t")
        await store.revive()
        result = await agent.resume("t")
        assert (result.text, len(result.state.messages)) == ("Read.", 2 + 2 * PAGES + 1)
        assert messages_of(model.requests)[-3:] == messages_of(plain.requests)[-3:]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"max_messages": 0}, "max_messages"),
        ({"max_messages": 4, "slack": 4}, "slack must be an int of 0 or more and less than max_messages"),
        ({"messages": 4}, "messages"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Agent(ScriptedModel(), conversation=settings)
