"""Answers to questions of runs that come again, come late, or are for another run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from locus import Agent
from locus.journal import MemoryStore, QueueStore
from locus.models import ModelRequest
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call

from .conftest import PATIENCE, Client, Gate, StartServer, ask, make_agent

TWICE = (call("ask", question="The first?"), call("ask", question="The second?"), "Both are done.")


def _call(client: Client, method: str, **params: Any) -> dict[str, Any]:
    answer = client.post_json("/a2a", jsonrpc="2.0", id=1, method=method, params=params)
    assert answer.status_code == 200, answer.text
    form: dict[str, Any] = answer.json()
    return form


def _message(text: str, message_id: str, **more: str) -> dict[str, Any]:
    return {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **more}


def _send(client: Client, text: str, message_id: str, **more: str) -> dict[str, Any]:
    return _call(client, "SendMessage", message=_message(text, message_id, **more))


def _asked(form: dict[str, Any]) -> str:
    status = form["result"]["task"]["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    return str(status["message"]["parts"][0]["text"])


def _script(request: ModelRequest) -> list[Any]:
    users = [each for each in request.messages if each.role.value == "user" and each.text]
    before = request.messages[: request.messages.index(users[-1])]
    said = [each for each in before if each.role.value == "assistant"]
    return ["" for _ in said] + (list(TWICE) if users[-1].text == "ask" else ["Hello."])


def test_a_message_to_a_finished_task_answers_no_question_of_a_newer_one(start_server: StartServer) -> None:
    model = ScriptedModel(script=_script, after="cycle")
    server = start_server(Agent(model, name="shop", tools=[ask], checkpointer=MemoryStore()))
    with server.client() as client:
        old = _send(client, "hi", "m1", contextId="c")["result"]["task"]
        over = _send(client, "yes", "m2", contextId="c", taskId=old["id"])
        assert (over["error"]["code"], "terminal state" in over["error"]["message"]) == (-32004, True)
        assert _send(client, "yes", "m2", contextId="c", taskId=old["id"]) == over
        new = _send(client, "ask", "m3", contextId="c")
        assert _asked(new) == "The first?"
        refused = _send(client, "yes", "m4", contextId="c", taskId=old["id"])
        assert refused["error"]["code"] == -32004
        (open_one,) = client.get("/api/threads/c").json()["interrupts"]
        assert open_one["question"] == "The first?"


def test_an_answer_that_comes_again_by_a2a_answers_nothing_more(start_server: StartServer) -> None:
    server = start_server(make_agent(*TWICE))
    with server.client() as client:
        asked = _send(client, "go", "m1")
        task = asked["result"]["task"]["id"]
        second = _send(client, "yes", "m2", taskId=task)
        assert _asked(second) == "The second?"
        assert _send(client, "yes", "m2", taskId=task) == second
        done = _send(client, "no", "m3", taskId=task)
        assert done["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert _send(client, "no", "m3", taskId=task) == done
        told = client.get(f"/api/threads/{done['result']['task']['contextId']}").json()["messages"]
        assert [each["text"] for each in told if each["role"] == "tool"] == [
            "the person said yes",
            "the person said no",
        ]


@pytest.mark.parametrize("kept", ["file", "no signals"])
def test_an_answer_that_comes_again_is_answered_with_the_same_result(
    start_server: StartServer, tmp_path: Path, kept: str
) -> None:
    store: Any = SqliteStore(tmp_path / "runs.db")
    if kept == "no signals":
        store = _WithoutSignals(store)
    server = start_server(make_agent(*TWICE, checkpointer=store))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Go.")
        one, two = (client.post_json("/api/threads/a/answers", answer="yes", request_id="x").json() for _ in range(2))
        assert one == two
        assert one["interrupts"][0]["question"] == "The second?"
        headers = {"Idempotency-Key": "y"}
        done, again = (
            client.post("/api/threads/a/answers", json={"answer": "no"}, headers=headers).json() for _ in range(2)
        )
        assert (done, done["text"], done["open"]) == (again, "Both are done.", False)
        new = client.post_json("/api/threads/a/answers", answer="no", request_id="z")
        assert (new.status_code, new.json()["error"]["code"]) == (409, "nothing_to_resume")
        events = client.read_stream("POST", "/api/threads/a/answers", answer="no", request_id="y", stream=True)
        assert [each.name for each in events][-1] == "ended"


def test_an_answer_that_comes_again_to_the_next_server_is_known(start_server: StartServer, tmp_path: Path) -> None:
    results = []
    for _ in range(2):
        server = start_server(make_agent(*TWICE, checkpointer=SqliteStore(tmp_path / "runs.db")))
        with server.client() as client:
            client.post_json("/api/threads/a/turns", prompt="Go.", request_id="t")
            results.append(client.post_json("/api/threads/a/answers", answer="yes", request_id="x").json())
        server.stop()
    assert results[0] == results[1]
    assert results[0]["interrupts"][0]["question"] == "The second?"


def test_an_answer_that_did_not_fit_may_be_corrected_under_its_name(start_server: StartServer) -> None:
    server = start_server(make_agent(*TWICE))
    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Go.")
        for _ in range(2):
            wrong = client.post_json("/api/threads/a/answers", answer="perhaps", request_id="x")
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "interrupt_mismatch")
        right = client.post_json("/api/threads/a/answers", answer="yes", request_id="x").json()
        assert right["interrupts"][0]["question"] == "The second?"


def test_an_answer_that_comes_again_while_its_run_goes_on_waits_for_the_same_end(
    start_server: StartServer, gate: Gate
) -> None:
    turns = (call("ask", question="Sure?"), call("gate"), "Done.")
    server = start_server(make_agent(*turns, tools=[ask, gate.tool]))
    results: list[Any] = []

    def post() -> None:
        with server.client() as client:
            results.append(client.post_json("/api/threads/a/answers", answer="yes", request_id="x").json())

    with server.client() as client:
        client.post_json("/api/threads/a/turns", prompt="Go.")
    posts = [threading.Thread(target=post) for _ in range(2)]
    posts[0].start()
    assert gate.entered.wait(PATIENCE)
    posts[1].start()
    gate.opened.set()
    for each in posts:
        each.join(PATIENCE)
    assert results[0]["text"] == "Done."
    assert results == [results[0]] * 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": [1]}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}', -32001),
    ],
)
def test_a_call_that_cannot_be_made_is_an_error_of_json_rpc(start_server: StartServer, body: bytes, code: int) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        answer = client.post("/a2a", content=body, headers={"Content-Type": "application/json"})
    form = answer.json()
    assert (answer.status_code, form["jsonrpc"], form["error"]["code"]) == (200, "2.0", code)
    assert form["id"] == (1 if body.startswith(b'{"jsonrpc"') else None)


class _WithoutSignals:
    """A store that keeps no signals."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if hasattr(QueueStore, name):
            raise AttributeError(name)
        return getattr(self._store, name)
