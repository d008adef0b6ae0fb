"""A request that comes again is that turn, whatever the server would say to a new one."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import httpx
import pytest

from locus.journal import MemoryStore, ThreadInfo, ThreadQuery
from locus_testkit import call

from .conftest import PATIENCE, Gate, StartServer, make_agent
from .processes import until


class SlowStore(MemoryStore):
    """A store that takes a moment to list threads, which the first request of a user waits for."""

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads, after a moment."""
        await anyio.sleep(0.2)
        return await super().threads(query)


@pytest.mark.parametrize("limits", [{"user_tokens_a_day": 1000}, {"user_tokens_a_day": 1000, "user_max_runs": 1}])
def test_requests_that_come_together_with_one_id_are_one_turn(
    start_server: StartServer, gate: Gate, limits: dict[str, Any]
) -> None:
    agent = make_agent(call("gate"), "Done.", tools=[gate.tool], checkpointer=SlowStore())
    server = start_server(agent, **limits)
    answers: list[httpx.Response] = []

    def post() -> None:
        with server.client() as client:
            answers.append(client.post_json("/api/threads/a/turns", prompt="Go.", request_id="turn-1"))

    threads = [threading.Thread(target=post) for _ in range(10)]
    for thread in threads:
        thread.start()
    assert gate.entered.wait(PATIENCE)
    with server.client() as client:
        until(lambda: "locus_serve_requests_in_progress 11.0" in client.get("/metrics").text, "all ten to be there")
    gate.opened.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert [each.status_code for each in answers] == [200] * 10
    assert all(each.json() == answers[0].json() for each in answers)
    assert gate.times == 1


def test_a_turn_that_has_ended_is_answered_when_the_limit_of_the_day_is_used_up(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), user_tokens_a_day=15)
    with server.client() as client:
        first = client.post_json("/api/threads/a/turns", prompt="Hi.", request_id="turn-1")
        again = client.post_json("/api/threads/a/turns", prompt="Hi.", request_id="turn-1")
        assert (again.status_code, again.json()) == (200, first.json())
        for new in ({"request_id": "turn-2"}, {}):
            assert client.post_json("/api/threads/a/turns", prompt="Hi.", **new).status_code == 429


def test_a_question_is_asked_again_when_the_limit_of_the_day_is_used_up(start_server: StartServer) -> None:
    server = start_server(make_agent(call("ask", question="Sure?"), "Done."), user_tokens_a_day=30)
    with server.client() as client:
        first, other = (
            client.post_json(f"/api/threads/{name}/turns", prompt="Hi.", request_id="turn-1") for name in "ab"
        )
        assert other.json()["stop_reason"] == "Cancelled: the 30 tokens a day of this user are used up"
        again = client.post_json("/api/threads/a/turns", prompt="Hi.", request_id="turn-1")
        assert again.status_code == 200
        assert again.json()["interrupts"] == first.json()["interrupts"] != []


def test_a_turn_that_has_ended_is_answered_by_a_server_that_is_full_or_drains(
    start_server: StartServer, gate: Gate
) -> None:
    turns = [call("gate"), "Done."]
    server = start_server(make_agent(*turns, tools=[gate.tool]), drain=PATIENCE, max_runs=1)
    with server.client() as client:
        gate.opened.set()
        first = client.post_json("/api/threads/a/turns", prompt="Go.", request_id="turn-1")
        gate.opened.clear()
        assert client.post_json("/api/threads/b/turns", prompt="Go.", wait=False).status_code == 202
        full = client.post_json("/api/threads/a/turns", prompt="Go.", request_id="turn-1")
        assert (full.status_code, full.json()) == (200, first.json())
        leaves = threading.Thread(target=server.stop)
        leaves.start()
        until(lambda: client.get("/healthz").status_code == 503, "the server to drain")
        again = client.post_json("/api/threads/a/turns", prompt="Go.", request_id="turn-1")
        new = client.post_json("/api/threads/a/turns", prompt="Go.", request_id="turn-2")
        gate.opened.set()
        leaves.join(PATIENCE)
    assert (again.status_code, again.json()) == (200, first.json())
    assert new.status_code == 503
    assert gate.times == 2
