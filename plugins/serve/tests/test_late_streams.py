"""Streams that begin in the middle of a turn, and tasks of A2A that a server leaves open."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from locus import Agent
from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call

from .conftest import PATIENCE, Client, Gate, Served, StartServer, make_agent, parse_events
from .processes import until

LONG = "One two three four five six seven eight."


def _read_chat(client: Client, name: str) -> tuple[str, str]:
    body = {"model": "shop", "messages": [{"role": "user", "content": "Go."}], "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body, headers={"Idempotency-Key": name}) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]", lines[-1]
    forms = [json.loads(line) for line in lines[:-1]]
    text = "".join(each["choices"][0]["delta"].get("content") or "" for each in forms)
    return text, forms[-1]["choices"][0]["finish_reason"]


def _read_response(client: Client, name: str) -> tuple[str, str]:
    body = {"model": "shop", "input": "Go.", "stream": True}
    with client.stream("POST", "/v1/responses", json=body, headers={"Idempotency-Key": name}) as answer:
        forms = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: {")]
    return "".join(each["delta"] for each in forms if "delta" in each), forms[-1]["type"]


def _read_agui(client: Client, name: str, **more: Any) -> tuple[str, str]:
    messages = [{"id": "1", "role": "user", "content": "Go."}]
    events = client.read_stream("POST", "/agui", **{"threadId": name, "runId": name, "messages": messages, **more})
    text = "".join(each.data["delta"] for each in events if each.data["type"] == "TEXT_MESSAGE_CONTENT")
    return text, events[-1].data["type"]


def _stream_a2a(client: Client, name: str, **more: Any) -> list[dict[str, Any]]:
    message = {"messageId": name, "role": "ROLE_USER", "parts": [{"text": "Go."}], **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    with client.stream("POST", "/a2a", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        return [each.data["result"] for each in parse_events(answer.iter_lines())]


def _read_a2a(client: Client, name: str) -> tuple[str, str]:
    return _read_updates(_stream_a2a(client, name))


def _read_updates(results: list[dict[str, Any]]) -> tuple[str, str]:
    pieces = [each["artifactUpdate"]["artifact"]["parts"][0]["text"] for each in results if "artifactUpdate" in each]
    return "".join(pieces), results[-1]["statusUpdate"]["status"]["state"]


def _count_requests(client: Client) -> int:
    """How many requests are open, without the one that asks."""
    found = re.search(r"requests_in_progress ([0-9]+)", client.get("/metrics").text)
    return int(found[1]) - 1 if found else 0


def _is_draining(server: Served) -> bool:
    with server.client() as client:
        return client.get("/healthz").status_code == 503


READERS: dict[str, tuple[Callable[[Client, str], tuple[str, str]], str]] = {
    "chat": (_read_chat, "stop"),
    "responses": (_read_response, "response.completed"),
    "agui": (_read_agui, "RUN_FINISHED"),
    "a2a": (_read_a2a, "TASK_STATE_COMPLETED"),
}


class _Held:
    """A model that stops in the middle of its answers until it is let go."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model, self.name, self.price = model, model.name, model.price
        self.is_in, self.is_let = threading.Event(), threading.Event()

    async def complete(self, request: Any, on_chunk: Any = None) -> Any:
        """Answer, with a pause behind the second piece."""
        number = 0

        async def pass_on(chunk: Any) -> None:
            nonlocal number
            await on_chunk(chunk)
            number += 1
            if number == 2:
                self.is_in.set()
                await to_thread.run_sync(self.is_let.wait, PATIENCE)

        return await self._model.complete(request, pass_on if on_chunk else None)


def _join(server: Served, protocol: str, is_in: threading.Event, let: Callable[[], None]) -> list[tuple[str, str]]:
    """What two readers of a turn get, of which the second comes when the turn is under way."""
    read, results = READERS[protocol][0], dict[int, tuple[str, str]]()

    def post(number: int) -> None:
        with server.client() as client:
            results[number] = read(client, "x")

    readers = [threading.Thread(target=post, args=(number,)) for number in range(2)]
    readers[0].start()
    assert is_in.wait(PATIENCE)
    readers[1].start()
    with server.client() as client:
        until(lambda: _count_requests(client) >= 2, "a second stream")
    let()
    for each in readers:
        each.join(PATIENCE)
    return [results[0], results[1]]


@pytest.mark.parametrize("protocol", READERS)
def test_who_joins_in_the_middle_of_an_answer_gets_all_of_it(start_server: StartServer, protocol: str) -> None:
    model = _Held(ScriptedModel(script=lambda request: [LONG], chunks=True, after="cycle"))
    server = start_server(Agent(model, name="shop", checkpointer=MemoryStore()))
    both = _join(server, protocol, model.is_in, model.is_let.set)
    assert both == [(LONG, READERS[protocol][1])] * 2


@pytest.mark.parametrize("protocol", READERS)
def test_who_joins_behind_an_answer_gets_it_first(start_server: StartServer, gate: Gate, protocol: str) -> None:
    server = start_server(make_agent(["First one.", call("gate")], "Second one.", tools=[gate.tool]))
    both = _join(server, protocol, gate.entered, gate.opened.set)
    whole = "First one.Second one." if protocol == "agui" else "First one.\n\nSecond one."
    assert both == [(whole, READERS[protocol][1])] * 2


def test_an_answer_by_agui_goes_on_behind_what_was_said_before_the_question(start_server: StartServer) -> None:
    server = start_server(make_agent(["Let me ask.", call("ask", question="Sure?")], "It is done."))
    with server.client() as client:
        assert _read_agui(client, "a") == ("Let me ask.", "RUN_FINISHED")
        (question,) = client.get("/api/threads/a").json()["interrupts"]
        resume = [{"interruptId": question["id"], "status": "resolved", "payload": "yes"}]
        assert _read_agui(client, "b", threadId="a", messages=[], resume=resume) == ("It is done.", "RUN_FINISHED")


def test_the_stream_of_an_answer_by_a2a_has_the_whole_artifact(start_server: StartServer) -> None:
    server = start_server(make_agent(["Let me ask.", call("ask", question="Sure?")], "It is done."))
    with server.client() as client:
        results = _stream_a2a(client, "m1")
        assert _read_updates(results) == ("Let me ask.", "TASK_STATE_INPUT_REQUIRED")
        task, answer = results[0]["task"]["id"], [{"text": "yes"}]
        for _ in range(2):  # the second time it has ended
            results = _stream_a2a(client, "m2", taskId=task, parts=answer)
            assert _read_updates(results) == ("Let me ask.\n\nIt is done.", "TASK_STATE_COMPLETED")


def _leave_during(post: Callable[[], None], server: Served, gate: Gate) -> None:
    """Have a server leave while it answers a request, whose tool ends only then."""
    poster, leaver = threading.Thread(target=post), threading.Thread(target=server.stop)
    poster.start()
    assert gate.entered.wait(PATIENCE)
    leaver.start()
    until(lambda: _is_draining(server), "a server that leaves")
    gate.opened.set()
    for each in (poster, leaver):
        each.join(PATIENCE)


@pytest.mark.parametrize("protocol", READERS)
def test_who_joins_a_turn_that_another_server_has_begun_gets_all_of_it(
    start_server: StartServer, tmp_path: Path, gate: Gate, protocol: str
) -> None:
    turns = (["First one.", call("gate")], ["Second one.", call("gate")], "Third one.")
    agent = make_agent(*turns, tools=[gate.tool], checkpointer=SqliteStore(tmp_path / "runs.db"))
    read, end = READERS[protocol]
    first = start_server(agent)

    def post() -> None:
        # Each protocol has its own way to say that the run was left open.
        with first.client() as client, suppress(AssertionError, KeyError):
            read(client, "x")

    _leave_during(post, first, gate)
    gate.entered.clear()
    gate.opened.clear()
    second = start_server(agent)
    both = _join(second, protocol, gate.entered, gate.opened.set)
    assert both == [(("" if protocol == "agui" else "\n\n").join(["First one.", "Second one.", "Third one."]), end)] * 2


@pytest.mark.parametrize("streams", [True, False])
def test_a_task_that_the_server_leaves_open_is_not_completed(
    start_server: StartServer, gate: Gate, streams: bool
) -> None:
    server = start_server(make_agent(["Let me see.", call("gate")], "I went through.", tools=[gate.tool]))
    states: list[str] = []

    def post() -> None:
        with server.client() as client:
            if streams:
                states.append(_read_a2a(client, "m")[1])
            else:
                message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Go."}]}
                body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
                form = client.post("/a2a", json=body).json()
                states.append(form["result"]["task"]["status"]["state"])

    _leave_during(post, server, gate)
    assert states == ["TASK_STATE_WORKING"]
