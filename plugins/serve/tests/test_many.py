"""Two hundred clients at once, each of which gets what it asked for and nothing of the others."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from locus import Agent
from locus.core.messages import Role
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus_testkit import ScriptedModel

from .conftest import PATIENCE, StartServer, parse_events

CLIENTS = 200


def _echo(request: ModelRequest) -> list[Any]:
    word = next(each.text for each in request.messages if each.role is Role.USER)
    return [" ".join([word] * 5)]


@pytest.fixture
def anyio_backend() -> str:
    """The client's; the server has one of its own."""
    return "asyncio"


@pytest.mark.anyio
async def test_two_hundred_streams_are_neither_lost_nor_crossed(start_server: StartServer) -> None:
    model = ScriptedModel(script=_echo, chunks=True)
    agent = Agent(model, name="shop", checkpointer=MemoryStore())
    server = start_server(agent, max_runs=CLIENTS, user_max_runs=CLIENTS)
    ready, whole = 0, []
    all_ready = anyio.Event()

    async def follow(client: httpx.AsyncClient, number: int) -> None:
        nonlocal ready
        ready += 1
        if ready == CLIENTS:
            all_ready.set()
        await all_ready.wait()  # so that they come together
        word = f"word-{number}-{'x' * (number % 7)}"
        body = {"prompt": word, "stream": True}
        async with client.stream("POST", f"/api/threads/t{number}/turns", json=body) as answer:
            assert answer.status_code == 200, await answer.aread()
            lines = [line async for line in answer.aiter_lines()]
        events = list(parse_events(iter(lines)))
        said = " ".join([word] * 5)
        recorded = [(each.name, each.data["text"]) for each in events if each.id]
        assert recorded == [("began", word), ("said", said), ("ended", "NoToolCalls")]
        assert "".join(each.data["text"] for each in events if each.name == "model_chunk") == said
        assert len({each.data["run_id"] for each in events}) == 1
        whole.append(events[0].data["run_id"])

    limits = httpx.Limits(max_connections=CLIENTS)
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=PATIENCE, limits=limits, trust_env=False) as client,
        anyio.create_task_group() as group,
    ):
        for number in range(CLIENTS):
            group.start_soon(follow, client, number)
    assert len(set(whole)) == CLIENTS
