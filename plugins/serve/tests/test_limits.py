"""How much is served: places are taken at once or refused, and the journals know what a day has cost."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

import httpx

from locus import Agent
from locus.core.messages import Usage
from locus.models import Price
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call, never

from .conftest import Gate, StartServer, make_agent
from .processes import until

ALICE, BOB = secrets.token_hex(32), secrets.token_hex(32)
TOKENS = {"alice": ALICE, "bob": BOB}


def _problem(answer: httpx.Response) -> tuple[int, str, bool]:
    return answer.status_code, answer.json()["error"]["code"], int(answer.headers["retry-after"]) >= 1


def test_a_server_without_room_refuses_at_once_and_queues_nothing(start_server: StartServer, gate: Gate) -> None:
    server = start_server(make_agent(call("gate"), "Done.", tools=[gate.tool]), max_runs=2)
    with server.client() as client:
        for name in "ab":
            assert client.post_json(f"/api/threads/{name}/turns", prompt="Go.", wait=False).status_code == 202
        for _ in range(5):
            assert _problem(client.post_json("/api/turns", prompt="Go.")) == (503, "overloaded", True)
        assert [each["thread"] for each in client.get("/api/threads").json()["threads"]] == ["b", "a"]
        gate.opened.set()
        for name in "ab":
            client.read_stream("GET", f"/api/threads/{name}/events")
        assert client.post_json("/api/turns", prompt="Go.").status_code == 200


def test_a_user_has_a_number_of_runs_and_others_have_theirs(start_server: StartServer, gate: Gate) -> None:
    agent = make_agent(call("gate"), "Done.", tools=[gate.tool])
    server = start_server(agent, tokens=TOKENS, user_max_runs=1)
    with server.client(ALICE) as alice, server.client(BOB) as bob:
        assert alice.post_json("/api/turns", prompt="Go.", wait=False).status_code == 202
        assert _problem(alice.post_json("/api/turns", prompt="Go.")) == (429, "too_many_runs", True)
        assert bob.post_json("/api/turns", prompt="Go.", wait=False).status_code == 202
        gate.opened.set()


def test_places_are_not_given_twice_to_requests_that_come_together(start_server: StartServer, gate: Gate) -> None:
    server = start_server(make_agent(call("gate"), "Done.", tools=[gate.tool]), max_runs=3)
    found: list[int] = []

    def post() -> None:
        with server.client() as client:
            found.append(client.post_json("/api/turns", prompt="Go.", wait=False).status_code)

    threads = [threading.Thread(target=post) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [202] * 3 + [503] * 9


def test_requests_beyond_what_may_be_open_are_refused(start_server: StartServer) -> None:
    server = start_server(make_agent(never), max_requests=2)
    with server.client() as client, server.client() as other:
        client.post_json("/api/threads/a/turns", prompt="Go.", wait=False)
        with client.stream("GET", "/api/threads/a/events") as one, other.stream("GET", "/api/threads/a/events") as two:
            assert (one.status_code, two.status_code) == (200, 200)
            with server.client() as third:
                assert _problem(third.get("/api/threads")) == (503, "overloaded", True)
                # Who watches over the server would take it for dead, and end its runs.
                assert third.get("/healthz").text == "ok\n"
                assert "locus_serve_requests_in_progress 3.0" in third.get("/metrics").text
    with server.client() as client:
        until(lambda: client.post_json("/api/threads/a/cancel").status_code == 202, "requests that have ended")


def test_the_tokens_of_a_day_are_counted_and_the_journals_know_them_after_a_restart(
    start_server: StartServer, tmp_path: Path
) -> None:
    def agent() -> Agent[None, str]:
        return make_agent("Hello.", checkpointer=SqliteStore(str(tmp_path / "runs.db")))

    for _ in range(2):
        server = start_server(agent(), tokens=TOKENS, user_tokens_a_day=45)
        with server.client(ALICE) as alice:
            assert alice.post_json("/api/threads/a/turns", prompt="Hi.").status_code == 200  # 15 tokens each
        server.stop()
    server = start_server(agent(), tokens=TOKENS, user_tokens_a_day=45)
    with server.client(ALICE) as alice, server.client(BOB) as bob:
        assert alice.post_json("/api/threads/b/turns", prompt="Hi.").status_code == 200
        assert _problem(alice.post_json("/api/turns", prompt="Hi.")) == (429, "limit_reached", True)
        chat = {"model": "shop", "messages": [{"role": "user", "content": "Hi."}]}
        assert _problem(alice.post_json("/v1/chat/completions", **chat)) == (429, "limit_reached", True)
        assert bob.post_json("/api/turns", prompt="Hi.").status_code == 200


def test_a_run_ends_when_the_dollars_of_the_day_are_used_up(start_server: StartServer) -> None:
    model = ScriptedModel(
        script=lambda request: [call("ask_again")] * 50,
        price=Price(prompt=1.0, completion=1.0),
        usage=Usage(prompt_tokens=1_000_000, completion_tokens=0),
    )
    agent = make_agent("unused")
    agent = Agent(model, name="shop", checkpointer=agent.threads.store)
    server = start_server(agent, user_dollars_a_day=3)
    with server.client() as client:
        ended = client.post_json("/api/turns", prompt="Go.").json()
        assert ended["stop_reason"] == "Cancelled: the $3 a day of this user are used up"
        assert ended["usage"]["dollars"] == 3.0
        assert _problem(client.post_json("/api/turns", prompt="Go.")) == (429, "limit_reached", True)
