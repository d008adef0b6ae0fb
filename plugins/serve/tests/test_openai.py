"""The APIs of OpenAI, asked by OpenAI's own client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest

from locus import Agent, tool
from locus.core.errors import ModelError
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

from .conftest import PATIENCE, Served, StartServer, make_agent


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


PAID = (["Let me see.", call("charge", cents=5)], "It is paid.")
Connect = Callable[[Served], openai.OpenAI]

SAID = "Let me see.\n\nIt is paid."


def _hi(text: str = "Hi.") -> list[Any]:
    return [{"role": "user", "content": text}]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients, which are closed in the end."""
    with ExitStack() as stack:

        def make(server: Served) -> openai.OpenAI:
            url = f"{server.url}/v1"
            return stack.enter_context(openai.OpenAI(base_url=url, api_key="x", timeout=PATIENCE, max_retries=0))

        yield make


@pytest.fixture
def client(start_server: StartServer, connect: Connect) -> openai.OpenAI:
    """A client of an agent that pays."""
    return connect(start_server(make_agent(*PAID, tools=[charge])))


def test_the_agent_is_the_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["shop"]
    assert client.models.retrieve("shop").owned_by == "locus"
    with pytest.raises(openai.NotFoundError, match="this server has 'shop'"):
        client.chat.completions.create(model="gpt-5", messages=_hi())


def test_a_chat_completion_is_what_the_agent_says(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(model="shop", messages=_hi())
    choice = done.choices[0]
    assert (choice.message.content, choice.message.role, choice.finish_reason) == (SAID, "assistant", "stop")
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens) == (20, 10, 30)
    assert done.model_extra is not None
    assert done.model_extra["locus"]["stop_reason"] == "NoToolCalls"


@pytest.mark.parametrize("chunks", [True, False, 1])
def test_the_pieces_of_a_chat_completion_are_the_whole(
    start_server: StartServer, connect: Connect, *, chunks: bool | int
) -> None:
    client = connect(start_server(make_agent(*PAID, tools=[charge], chunks=chunks)))
    stream = client.chat.completions.create(
        model="shop", messages=_hi(), stream=True, stream_options={"include_usage": True}
    )
    pieces = list(stream)
    assert "".join(each.choices[0].delta.content or "" for each in pieces if each.choices) == SAID
    assert [each.choices[0].finish_reason for each in pieces if each.choices][-1] == "stop"
    assert pieces[-1].usage is not None
    assert pieces[-1].usage.total_tokens == 30
    assert len({each.id for each in pieces}) == 1
    assert (len(pieces) > 5) == bool(chunks)


def test_the_accumulating_helper_of_the_client_reads_the_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="shop", messages=_hi()) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content == SAID


def test_the_conversation_that_a_client_sends_reaches_the_model(start_server: StartServer, connect: Connect) -> None:
    model = ScriptedModel("Fine.", after="repeat")
    agent = Agent(model, name="shop", system_prompt="You are a shop.", checkpointer=make_agent("x").threads.store)
    client = connect(start_server(agent))
    image = "data:image/png;base64,aGVsbG8="
    client.chat.completions.create(
        model="shop",
        temperature=0.25,
        max_completion_tokens=7,
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One."},
            {"role": "assistant", "content": "1"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Two."}, {"type": "image_url", "image_url": {"url": image}}],
            },
        ],
    )
    (request,) = model.requests
    assert [(each.role.value, each.text) for each in request.messages] == [
        ("system", "You are a shop."),
        ("user", "Be brief.One."),
        ("assistant", "1"),
        ("user", "Two."),
    ]
    assert request.messages[-1].content[1].data == b"hello"  # type: ignore[union-attr]
    assert (request.settings.temperature, request.settings.max_tokens) == (0.25, 7)


#: Fields of a chat completion that the agent cannot heed.
NOT_HEEDED: tuple[tuple[str, Any], ...] = (
    ("tools", [{"type": "function", "function": {"name": "f", "parameters": {}}}]),
    ("n", 2),
    ("response_format", {"type": "json_object"}),
    ("stop", ["x"]),
    ("temperature", -1),
    ("messages", []),
    ("messages", [{"role": "assistant", "content": "Hi."}]),
    ("messages", [{"role": "tool", "content": "x", "tool_call_id": "1"}]),
    (
        "messages",
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}],
    ),
)


def test_what_would_have_no_effect_is_refused(client: openai.OpenAI) -> None:
    for field, value in NOT_HEEDED:
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(**{"model": "shop", "messages": _hi(), field: value})


def test_an_idempotency_key_makes_a_repeated_completion_the_same(start_server: StartServer, connect: Connect) -> None:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> list[Any]:
        asked.append(request)
        return ["Hello."]

    agent = Agent(ScriptedModel(script=script, chunks=True), name="shop", checkpointer=make_agent("x").threads.store)
    client = connect(start_server(agent))
    headers = {"Idempotency-Key": "k"}
    one, two = (client.chat.completions.create(model="shop", messages=_hi(), extra_headers=headers) for _ in range(2))
    assert (one.id, one.choices) == (two.id, two.choices)
    stream = client.chat.completions.create(model="shop", messages=_hi(), extra_headers=headers, stream=True)
    assert "".join(each.choices[0].delta.content or "" for each in stream) == "Hello."
    assert len(asked) == 1


def test_a_failed_run_is_an_error_in_both_forms(start_server: StartServer, connect: Connect) -> None:
    client = connect(start_server(make_agent(ModelError("the model is down"))))
    with pytest.raises(openai.InternalServerError, match="the model is down"):
        client.chat.completions.create(model="shop", messages=_hi())
    with pytest.raises(openai.APIError, match="the model is down"):
        list(client.chat.completions.create(model="shop", messages=_hi(), stream=True))
    with pytest.raises(openai.InternalServerError, match="the model is down"):
        client.responses.create(model="shop", input="Hi.")
    events = list(client.responses.create(model="shop", input="Hi.", stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error is not None
    assert "the model is down" in events[-1].response.error.message


def test_a_question_to_a_person_comes_beside_the_answer(start_server: StartServer, connect: Connect) -> None:
    server = start_server(make_agent(["I ask.", call("ask", question="Sure?")], "Done."))
    done = connect(server).chat.completions.create(model="shop", messages=_hi())
    assert done.choices[0].message.content == "I ask."
    assert done.model_extra is not None
    (question,) = done.model_extra["locus"]["interrupts"]
    with server.client() as own:
        path = f"/api/threads/{done.model_extra['locus']['thread']}/answers"
        assert own.post_json(path, answers={question["id"]: "yes"}).json()["text"] == "Done."


def test_a_response_goes_on_with_the_one_before(start_server: StartServer, connect: Connect) -> None:
    model = ScriptedModel("One.", "Two.", chunks=True)
    agent = Agent(model, name="shop", checkpointer=make_agent("x").threads.store)
    client = connect(start_server(agent))
    one = client.responses.create(model="shop", input="First.", instructions="Be brief.")
    assert (one.output_text, one.status) == ("One.", "completed")
    assert one.usage is not None
    assert one.usage.total_tokens == 15
    two = client.responses.create(
        model="shop",
        previous_response_id=one.id,
        input=[{"role": "user", "content": [{"type": "input_text", "text": "Second."}]}],
    )
    assert (two.output_text, two.previous_response_id) == ("Two.", one.id)
    assert [each.text for each in model.requests[-1].messages] == ["Be brief.First.", "One.", "Second."]
    with pytest.raises(openai.ConflictError, match="not the newest"):
        client.responses.create(model="shop", previous_response_id=one.id, input="Again.")


def test_the_helper_of_the_client_reads_the_stream_of_a_response(client: openai.OpenAI) -> None:
    deltas: list[str] = []
    with client.responses.stream(model="shop", input="Hi.") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == SAID
    assert final.status == "completed"
