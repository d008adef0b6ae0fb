"""Many runs through one instance, and what importing it costs."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from locus import Agent
from locus.core.events import ModelChunkEvent
from locus_testkit.imports import modules_imported_by
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest
from locus_testkit.scripted_model import blocks_of, call

from .emulator import chat, responses
from .kit import model_at


def _echoing(form: str) -> Any:
    """A server that calls a tool with the last word of the user's turn, and then says it many times."""

    def answer(request: ReceivedRequest) -> Answer:
        asked = request.json
        given = asked["messages" if form == "chat" else "input"]
        text = json.dumps(given)
        word = text[text.index("word-") : text.index("word-") + 8]
        called = "function_call_output" in text or '"role": "tool"' in text
        turn: Any = f"{word} " * 20 if called else call("look", word=word)
        return (chat if form == "chat" else responses)(blocks_of(turn), 1, asked)

    return answer


@pytest.mark.anyio
@pytest.mark.parametrize("form", ["chat", pytest.param("responses", marks=pytest.mark.proof)])
async def test_200_runs_at_a_time_share_a_few_connections_and_mix_nothing(form: str) -> None:
    seen: dict[str, str] = {}

    def look(word: str) -> str:
        """Look at a word."""
        return word

    with LocalServer(_echoing(form)) as server:
        model = model_at(f"{server.url}/v1", form, connections=16)
        agent: Agent[Any, Any] = Agent(model, tools=[look])

        async def one(number: int) -> None:
            word = f"word-{number:03}"
            heard = ""
            async for event in agent.run(f"Say {word}"):
                if isinstance(event, ModelChunkEvent) and event.kind == "text":
                    heard += event.text
            seen[word] = heard

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for number in range(200):
                    group.start_soon(one, number)
        assert seen == {f"word-{n:03}": f"word-{n:03} " * 20 for n in range(200)}
        assert len(server.received) == 400
        assert server.most <= 16
        assert server.wait_until_idle()


def test_choosing_the_provider_loads_its_own_stack_and_nothing_else() -> None:
    """Its modules, the client's, and no SDK: under twice what the client alone takes."""
    client, own = modules_imported_by("httpx2"), modules_imported_by("locus_plugin_openai.model")
    assert len(own) < 2 * len(client), sorted(own - client)
    assert not {name.partition(".")[0] for name in own} & {"openai", "pydantic", "requests", "tenacity"}


def test_the_manifest_loads_no_client() -> None:
    assert "httpx2" not in modules_imported_by("locus_plugin_openai.manifest")
