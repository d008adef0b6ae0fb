"""A2A, asked by the client of its own SDK."""

from __future__ import annotations

import secrets
from typing import Any
from uuid import uuid4

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.client.errors import A2AClientError
from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageRequest, StreamResponse, TaskState
from a2a.utils.errors import A2AError

from locus import tool
from locus_testkit import call

from .conftest import PATIENCE, Served, StartServer, make_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The SDK's client needs it."""
    return "asyncio"


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


def _message(text: str, **more: Any) -> SendMessageRequest:
    given = {"message_id": uuid4().hex, **more}
    return SendMessageRequest(message=Message(role=Role.ROLE_USER, parts=[Part(text=text)], **given))


async def _ask(
    server: Served, request: SendMessageRequest, *, streams: bool = True, token: str = ""
) -> list[StreamResponse]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False, headers=headers) as http:
        client = await create_client(server.url, ClientConfig(httpx_client=http, streaming=streams))
        return [each async for each in client.send_message(request)]


async def test_a_message_is_a_task_that_completes_with_what_the_agent_says(start_server: StartServer) -> None:
    server = start_server(make_agent(["Let me see.", call("charge", cents=5)], "It is paid.", tools=[charge]))
    (whole,) = await _ask(server, _message("Pay."), streams=False)
    assert whole.task.status.state == TaskState.TASK_STATE_COMPLETED
    assert whole.task.artifacts[0].parts[0].text == "Let me see.\n\nIt is paid."

    first, *updates, last = await _ask(server, _message("Pay.", context_id="order-1"))
    assert (first.task.context_id, first.task.status.state) == ("order-1", TaskState.TASK_STATE_WORKING)
    pieces = [each.artifact_update for each in updates]
    assert "".join(each.artifact.parts[0].text for each in pieces) == "Let me see.\n\nIt is paid."
    assert [each.append for each in pieces] == [False] + [True] * (len(pieces) - 1)
    assert last.status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_a_message_that_comes_again_is_the_same_task(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    message = _message("Hi.")
    (one,), (two,) = [await _ask(server, message, streams=False) for _ in range(2)]
    assert one == two


async def test_a_question_needs_input_and_the_next_message_of_the_task_is_the_answer(start_server: StartServer) -> None:
    server = start_server(make_agent(call("ask", question="Sure?"), "As you wish."))
    (asked,) = await _ask(server, _message("Pay."), streams=False)
    assert asked.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert asked.task.status.message.parts[0].text == "Sure?"
    (done,) = await _ask(server, _message("yes", task_id=asked.task.id), streams=False)
    assert (done.task.id, done.task.artifacts[0].parts[0].text) == (asked.task.id, "As you wish.")


async def test_a_failed_run_is_a_failed_task_and_a_task_is_found_by_its_user_alone(start_server: StartServer) -> None:
    alice, bob = secrets.token_hex(32), secrets.token_hex(32)
    server = start_server(make_agent(ValueError("down")), tokens={"alice": alice, "bob": bob})
    (failed,) = await _ask(server, _message("Hi."), streams=False, token=alice)
    assert failed.task.status.state == TaskState.TASK_STATE_FAILED
    for token, finds in ((alice, True), (bob, False)):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False, headers=headers) as http:
            client = await create_client(server.url, ClientConfig(httpx_client=http))
            if finds:
                assert (await client.get_task(GetTaskRequest(id=failed.task.id))).id == failed.task.id
            else:
                with pytest.raises((A2AError, A2AClientError)):
                    await client.get_task(GetTaskRequest(id=failed.task.id))
