"""AG-UI: every event is one of the protocol's own models, and they come in its order."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ag_ui.core import Event, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from locus import tool
from locus_testkit import call, never

from .conftest import PATIENCE, Client, StartServer, make_agent
from .processes import until

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


def _input(thread: str, run: str, *said: str, **more: Any) -> dict[str, Any]:
    messages: list[Any] = [UserMessage(id=f"m{n}", content=text) for n, text in enumerate(said)]
    made = RunAgentInput(thread_id=thread, run_id=run, messages=messages, **more)
    form: dict[str, Any] = json.loads(made.model_dump_json(by_alias=True, exclude_none=True))
    return form


def _run(client: Client, body: dict[str, Any]) -> list[Any]:
    return [EVENTS.validate_python(each.data) for each in client.read_stream("POST", "/agui", **body)]


def _kinds(events: list[Any]) -> list[str]:
    kinds = [each.type.value for each in events]
    return [kind for n, kind in enumerate(kinds) if n == 0 or kind != kinds[n - 1]]


def test_a_run_is_shown_in_the_events_of_the_protocol(start_server: StartServer) -> None:
    agent = make_agent(["Let me see.", call("charge", cents=5)], "It is paid.", tools=[charge])
    server = start_server(agent)
    with server.client() as client:
        events = _run(client, _input("t", "run-1", "Pay."))
        said = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
        called = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
        assert _kinds(events) == ["RUN_STARTED", *said, *called, *said, "RUN_FINISHED"]
        assert (events[0].thread_id, events[0].run_id, events[-1].outcome.type) == ("t", "run-1", "success")
        texts: dict[str, str] = {}
        for each in events:
            if each.type == "TEXT_MESSAGE_CONTENT":
                texts[each.message_id] = texts.get(each.message_id, "") + each.delta
        assert list(texts.values()) == ["Let me see.", "It is paid."]
        (arguments,) = [each for each in events if each.type == "TOOL_CALL_ARGS"]
        (result,) = [each for each in events if each.type == "TOOL_CALL_RESULT"]
        assert (json.loads(arguments.delta), result.content) == ({"cents": 5}, "5 cents charged")
        assert arguments.tool_call_id == result.tool_call_id

        again = _run(client, _input("t", "run-1", "Pay."))  # the same run: told from the journal, and not run again
        assert [each.delta for each in again if each.type == "TEXT_MESSAGE_CONTENT"] == ["Let me see.It is paid."]
        assert again[-1] == events[-1]


def test_a_question_suspends_the_run_and_the_next_input_answers_it(start_server: StartServer) -> None:
    server = start_server(make_agent(call("ask", question="Sure?"), "As you wish."))
    with server.client() as client:
        outcome = _run(client, _input("t", "run-1", "Pay."))[-1].outcome
        assert (outcome.type, outcome.interrupts[0].message) == ("interrupt", "Sure?")
        answer = {"interrupt_id": outcome.interrupts[0].id, "status": "resolved", "payload": "yes"}
        events = _run(client, _input("t", "run-2", resume=[answer]))
        assert _kinds(events)[-4:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]


def test_failures_are_errors_of_the_protocol_or_of_http(start_server: StartServer) -> None:
    server = start_server(make_agent(ValueError("the model is down")))
    with server.client() as client:
        events = _run(client, _input("t", "run-1", "Pay."))
        assert _kinds(events) == ["RUN_STARTED", "RUN_ERROR"]
        assert "the model is down" in events[-1].message
        tools = [{"name": "f", "description": "f", "parameters": {}}]
        assert client.post_json("/agui", **_input("t", "run-2", "Hi.", tools=tools)).status_code == 400
        assert client.post_json("/agui", threadId="../x", runId="r", messages=[]).status_code == 400

    server = start_server(make_agent(never))
    with server.client() as client:
        client.post_json("/api/threads/t/turns", prompt="Go.", wait=False)
        assert client.post_json("/agui", **_input("t", "run-1", "Hi.")).status_code == 409
        client.post_json("/api/threads/t/cancel")


def test_a_run_that_is_cancelled_says_so(start_server: StartServer) -> None:
    server = start_server(make_agent(never))
    with server.client() as client, server.client() as other, ThreadPoolExecutor(1) as pool:
        events = pool.submit(_run, client, _input("t", "run-1", "Pay."))
        until(lambda: other.get("/api/threads/t").json().get("status") == "running", "a run")
        other.post_json("/api/threads/t/cancel")
        assert events.result(PATIENCE)[-1].outcome.type == "cancelled"
