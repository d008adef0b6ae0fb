"""The server's own API: turns, their events, questions, cancels, and requests that come twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from locus import tool
from locus_plugin_sqlite import SqliteStore
from locus_testkit import call, never

from .conftest import PATIENCE, Client, Gate, StartServer, make_agent, parse_events
from .processes import until


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


PAID = (["Let me see.", call("charge", cents=5)], "It is paid.")
ASKED = (call("ask", question="Charge it?"), "As you wish.")


def test_a_streamed_turn_has_what_is_recorded_with_ids_and_the_pieces_without(start_server: StartServer) -> None:
    server = start_server(make_agent(*PAID, tools=[charge]))
    with server.client() as client:
        events = client.read_stream("POST", "/api/threads/order-1/turns", prompt="Pay.", stream=True)
    recorded = [(each.name, each.data["text"]) for each in events if each.id]
    assert recorded == [
        ("began", "Pay."),
        ("said", "Let me see."),
        ("called", ""),
        ("returned", "5 cents charged"),
        ("said", "It is paid."),
        ("ended", "NoToolCalls"),
    ]
    pieces = [each.data for each in events if each.name == "model_chunk" and each.data.get("kind", "text") == "text"]
    assert "".join(each["text"] for each in pieces) == "Let me see.It is paid."
    assert not any(each.id for each in events if each.name in ("model_chunk", "tool_start"))
    names = [each.name for each in events]
    assert names.index("model_chunk") < names.index("said") < names.index("tool_start") < names.index("returned")
    assert all(each.data.get("thread_id") is None for each in events)


@pytest.mark.parametrize("store", ["memory", "file"])
def test_the_pieces_of_an_answer_come_before_its_record(start_server: StartServer, tmp_path: Path, store: str) -> None:
    kept: dict[str, Any] = {"checkpointer": SqliteStore(tmp_path / "runs.db")} if store == "file" else {}
    turns = [each for n in range(8) for each in ([f"This is number {n}.", call("charge", cents=n)],)]
    server = start_server(make_agent(*turns, "It is paid.", tools=[charge], **kept))
    with server.client() as client:
        events = client.read_stream("POST", "/api/threads/a/turns", prompt="Pay.", stream=True)
    pieces, told = "", []
    for each in events:
        if each.name == "model_chunk" and each.data["kind"] == "text":
            pieces += each.data["text"]
        elif each.name == "said":
            told.append((pieces, each.data["text"]))
            pieces = ""
    assert pieces == ""
    assert len(told) == 9
    assert all(shown == said for shown, said in told), told


@pytest.mark.parametrize("waits", [True, False])
def test_pieces_are_made_where_somebody_may_read_them(start_server: StartServer, gate: Gate, waits: bool) -> None:
    server = start_server(make_agent(call("gate"), "I went through.", tools=[gate.tool]))

    def post() -> None:
        with server.client() as client:
            client.post_json("/api/threads/a/turns", prompt="Go.", wait=waits)

    asks = threading.Thread(target=post)
    asks.start()
    assert gate.entered.wait(PATIENCE)
    names = []
    with server.client() as watcher, watcher.stream("GET", "/api/threads/a/events") as answer:
        for each in parse_events(answer.iter_lines()):
            names.append(each.name)
            gate.opened.set()
    asks.join(PATIENCE)
    assert names[-1] == "ended"
    # Whoever waits for the result reads no pieces, so the model is not asked for any.
    assert ("model_chunk" in names) is not waits


def test_a_client_that_comes_again_gets_the_rest_and_nothing_twice(start_server: StartServer) -> None:
    server = start_server(make_agent(*PAID, tools=[charge]))
    with server.client() as client:
        first = client.read_stream("POST", "/api/threads/a/turns", prompt="Pay.", stream=True)
        recorded = [each for each in first if each.id]
        assert client.read_stream("GET", "/api/threads/a/events") == recorded
        for cut, last in enumerate(recorded, 1):
            assert client.read_stream("GET", "/api/threads/a/events", last=last.id) == recorded[cut:]


def test_an_event_source_does_not_come_again_when_nothing_will_come(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        events = client.read_stream("POST", "/api/threads/a/turns", prompt="Hi.", stream=True)
        again = client.get("/api/threads/a/events", headers={"Last-Event-ID": events[-1].id})
        assert again.status_code == 204
        wrong = client.get("/api/threads/a/events", headers={b"Last-Event-ID": b"x\xe9"})
        beyond = client.get("/api/threads/a/events", headers={"Last-Event-ID": "999.0"})
        assert (wrong.status_code, beyond.status_code) == (400, 400)


def test_a_turn_that_is_waited_for_is_answered_with_its_result_and_the_thread_has_it(start_server: StartServer) -> None:
    server = start_server(make_agent(*PAID, tools=[charge]))
    with server.client() as client:
        done = client.post_json("/api/threads/a/turns", prompt="Pay.").json()
        assert (done["thread"], done["text"], done["stop_reason"], done["open"]) == (
            "a",
            "It is paid.",
            "NoToolCalls",
            False,
        )
        assert done["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "dollars": None}
        thread = client.get("/api/threads/a").json()
        assert [(each["role"], each["text"]) for each in thread["messages"]] == [
            ("user", "Pay."),
            ("assistant", "Let me see."),
            ("tool", "5 cents charged"),
            ("assistant", "It is paid."),
        ]
        assert (thread["status"], thread["run_id"]) == ("ended", done["run_id"])
        assert [each["thread"] for each in client.get("/api/threads").json()["threads"]] == ["a"]


def test_an_accepted_turn_is_followed_from_where_it_began(start_server: StartServer, gate: Gate) -> None:
    server = start_server(make_agent(call("gate"), "I went through.", tools=[gate.tool]))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Before.", wait=False)
        gate.opened.set()
        client.read_stream("GET", "/api/threads/a/events")
        accepted = client.post_json("/api/threads/a/turns", prompt="Go.", wait=False)
        assert accepted.status_code == 202
        events = client.read_stream("GET", "/api/threads/a/events", last=accepted.json()["last_event_id"])
        recorded = [each for each in events if each.id]
        assert (recorded[0].name, recorded[0].data["text"], recorded[-1].name) == ("began", "Go.", "ended")
        assert {each.data["run_id"] for each in recorded} == {accepted.json()["run_id"]}


def test_a_request_that_comes_again_is_the_same_turn(start_server: StartServer, gate: Gate) -> None:
    server = start_server(make_agent(call("gate"), "Done.", tools=[gate.tool]))
    results: list[dict[str, Any]] = []

    def post(headers: dict[str, str], **body: Any) -> None:
        with server.client() as client:
            answer = client.post("/api/threads/a/turns", json={"prompt": "Go.", **body}, headers=headers)
            results.append(answer.json())

    threads = [
        threading.Thread(target=post, args=({},), kwargs={"request_id": "turn-1"}),
        threading.Thread(target=post, args=({"Idempotency-Key": "turn-1"},)),
    ]
    threads[0].start()
    assert gate.entered.wait(PATIENCE)
    threads[1].start()  # while the turn is under way
    gate.opened.set()
    for thread in threads:
        thread.join(PATIENCE)
    post({}, request_id="turn-1")  # and when it has ended
    assert len(results) == 3
    assert results[0]["text"] == "Done."
    assert results == [results[0]] * 3
    assert gate.times == 1
    with server.client() as client:
        streamed = client.read_stream("POST", "/api/threads/a/turns", prompt="?", request_id="turn-1", stream=True)
        assert [each.name for each in streamed if each.id] == ["began", "called", "returned", "said", "ended"]
        assert client.post_json("/api/threads/a/turns", prompt="Next.", request_id="turn-2").status_code == 200
        earlier = client.post_json("/api/threads/a/turns", prompt="Go.", request_id="turn-1")
        assert (earlier.status_code, earlier.json()["error"]["code"]) == (409, "request_superseded")
    assert gate.times == 2


def test_a_new_thread_of_a_repeated_request_is_the_same_thread(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        one, two = (client.post_json("/api/turns", prompt="Hi.", request_id="x").json() for _ in range(2))
        other = client.post_json("/api/turns", prompt="Hi.").json()
        assert one == two
        assert other["thread"] != one["thread"]


def test_a_question_is_answered_and_the_run_goes_on(start_server: StartServer) -> None:
    server = start_server(make_agent(*ASKED))
    with server.client() as client:
        asked = client.post_json("/api/threads/a/turns", prompt="Pay.").json()
        (question,) = asked["interrupts"]
        assert (question["question"], question["options"], asked["open"]) == ("Charge it?", ["yes", "no"], True)
        assert client.get("/api/threads/a").json()["status"] == "waiting"
        wrong = client.post_json("/api/threads/a/answers", answer="perhaps")
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "interrupt_mismatch")
        events = client.read_stream("POST", "/api/threads/a/answers", answers={question["id"]: "yes"}, stream=True)
        assert [each.name for each in events if each.id] == ["resumed", "answered", "returned", "said", "ended"]
        again = client.post_json("/api/threads/a/answers", answer="yes")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "nothing_to_resume")


def test_the_events_of_a_thread_that_asks_end_with_the_question(start_server: StartServer) -> None:
    server = start_server(make_agent(*ASKED))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Pay.")
        events = client.read_stream("GET", "/api/threads/a/events")
        assert [each.name for each in events][-2:] == ["asked", "paused"]


def test_a_run_is_cancelled_while_it_works_and_while_it_waits(start_server: StartServer) -> None:
    server = start_server(make_agent(never))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Go.", wait=False)
        assert client.post_json("/api/threads/a/cancel", reason="enough").status_code == 202
        events = client.read_stream("GET", "/api/threads/a/events")
        assert (events[-1].name, events[-1].data["text"]) == ("ended", "Cancelled: enough")
        assert client.post_json("/api/threads/a/cancel").status_code == 409

    server = start_server(make_agent(*ASKED))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Pay.")
        assert client.post_json("/api/threads/a/cancel", reason="enough").status_code == 202
        events = client.read_stream("GET", "/api/threads/a/events")
        assert (events[-1].name, events[-1].data["text"]) == ("ended", "Cancelled: enough")


def test_a_second_turn_on_a_busy_thread_is_refused(start_server: StartServer) -> None:
    server = start_server(make_agent(never))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Go.", wait=False)
        busy = client.post_json("/api/threads/a/turns", prompt="Me too.")
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "thread_busy")
        client.post_json("/api/threads/a/cancel")


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(("wish", "stopped"), [("cancel", "Cancelled: the client left"), ("keep", "NoToolCalls")])
def test_a_run_whose_client_has_left_is_cancelled_or_kept(
    start_server: StartServer, gate: Gate, *, streams: bool, wish: str, stopped: str
) -> None:
    turns = (never,) if wish == "cancel" else (call("gate"), "Done.")
    server = start_server(make_agent(*turns, tools=[gate.tool]))

    def leave() -> None:
        with server.client() as client:
            body = {"prompt": "Go.", "stream": streams, "on_disconnect": wish}
            with client.stream("POST", "/api/threads/a/turns", json=body, timeout=0.5) as answer:
                answer.read()

    with pytest.raises(Exception, match="timed out"):
        leave()
    with server.client() as client:
        if wish == "cancel":
            end = time.monotonic() + PATIENCE
            while client.get("/api/threads/a").json()["status"] == "running" and time.monotonic() < end:
                time.sleep(0.01)
        else:
            assert client.get("/api/threads/a").json()["status"] == "running"
            gate.opened.set()
        events = client.read_stream("GET", "/api/threads/a/events")
        assert (events[-1].name, events[-1].data["text"]) == ("ended", stopped)


def test_a_client_that_has_come_again_does_not_lose_its_turn_with_its_old_connection(
    start_server: StartServer, gate: Gate
) -> None:
    server = start_server(make_agent(call("gate"), "Done.", tools=[gate.tool]))
    body = {"prompt": "Go.", "request_id": "turn-1", "on_disconnect": "cancel"}
    results: list[dict[str, Any]] = []

    def come_again() -> None:
        with server.client() as client:
            results.append(client.post_json("/api/threads/a/turns", **body).json())

    def count_requests(client: Client) -> int:
        lines = client.get("/metrics").text.splitlines()
        return round(
            float(next(line.split()[1] for line in lines if "requests_in_progress " in line and "#" not in line))
        )

    again = threading.Thread(target=come_again)
    with server.client() as client:
        with server.client() as old, old.stream("POST", "/api/threads/a/turns", json={**body, "stream": True}):
            assert gate.entered.wait(PATIENCE)
            again.start()
            until(lambda: count_requests(client) == 3, "both requests, and the one that asks")
        until(lambda: count_requests(client) == 2, "the old connection to be gone")
    gate.opened.set()
    again.join(PATIENCE)
    assert results[0]["text"] == "Done."


#: Path, body, the status of the answer, and the field that it names.
NOT_UNDERSTOOD: tuple[tuple[str, str, int, str | None], ...] = (
    ("/api/turns", '{"promt": "Hi."}', 400, "promt"),
    ("/api/turns", '{"prompt": 3}', 400, "prompt"),
    ("/api/turns", '{"prompt": " "}', 400, None),
    ("/api/turns", '{"prompt": "\\ud800"}', 400, None),
    ("/api/turns", '{"prompt": "Hi.", "stream": 1}', 400, "stream"),
    ("/api/turns", '{"prompt": "Hi.", "on_disconnect": "maybe"}', 400, "on_disconnect"),
    ("/api/turns", "[" * 900, 400, None),
    ("/api/turns", '["Hi."]', 400, None),
    ("/api/turns", " " * 1001, 413, None),
    ("/api/threads/%2e%2e/turns", '{"prompt": "Hi."}', 400, None),
    ("/api/threads/a%2fb/turns", '{"prompt": "Hi."}', 404, None),
    ("/api/threads/nobody/answers", '{"answer": "yes"}', 404, None),
    ("/api/threads/nobody/cancel", "{}", 404, None),
    ("/nothing", "{}", 404, None),
)


def test_what_cannot_be_understood_is_refused_by_name(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), max_body_bytes=1000)
    with server.client() as client:
        for path, body, status, param in NOT_UNDERSTOOD:
            refused = client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert (refused.status_code, refused.json()["error"]["param"]) == (status, param), (path, body)


def test_a_body_without_an_announced_length_is_cut_off(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), max_body_bytes=1000)

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 100

    with server.client() as client:
        endless = client.post("/api/turns", content=pieces(), headers={"Content-Type": "application/json"})
        assert endless.status_code == 413
        assert client.post_json("/api/turns", prompt="Hi.").status_code == 200


def test_hostile_text_stays_in_its_event(start_server: StartServer) -> None:
    hostile = "a\n\nevent: ended\ndata: {}\r\rid: 9\u2028</script>"
    server = start_server(make_agent(hostile, chunks=False))
    with server.client() as client:
        events = client.read_stream("POST", "/api/threads/a/turns", prompt=hostile, stream=True)
        assert [each.name for each in events if each.id] == ["began", "said", "ended"]
        assert events[0].data["text"] == hostile
