"""What a request says, and what is made of the odder answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from locus.core.frozen import freeze
from locus.core.messages import Block, MediaBlock, Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models.protocol import Chunk, ModelRequest, ModelResponse, ModelSettings, OutputSpec
from locus.tools.definition import ToolSpec
from locus_testkit.localserver import Answer, LocalServer
from locus_wire.errors import BadAnswer, ConnectionLost, Overloaded, ProviderFailed

from .emulator import chat, responses
from .kit import FORMS, model_at

pytestmark = pytest.mark.anyio

LOOK = ToolSpec(
    name="look",
    description="Looks.",
    parameters=freeze({"type": "object", "properties": {"at": {"type": "string"}}, "additionalProperties": False}),
)
FREE = ToolSpec(name="free", description="Takes anything.", parameters=freeze({"type": "object"}))
ANSWER = OutputSpec(name="answer", schema=freeze({"type": "object", "properties": {"x": {"type": "integer"}}}))


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as server:
        yield server


async def body_sent(server: LocalServer, form: str, request: ModelRequest, **settings: Any) -> dict[str, Any]:
    """The body that a request becomes."""
    says = chat if form == "chat" else responses
    server.then(says([TextBlock("{}")], 1, {"model": "m"}))
    await model_at(f"{server.url}/v1", form, **settings).complete(request)
    body: dict[str, Any] = server.received[-1].json
    return body


async def stream(
    server: LocalServer, form: str, *events: Any, done: str = "[DONE]"
) -> tuple[ModelResponse, list[Chunk]]:
    """The response that a stream becomes, and its chunks."""
    server.then(Answer.events(*events, done=done))
    chunks: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        chunks.append(chunk)

    request = ModelRequest(messages=(Message(Role.USER, "Hi."),))
    return await model_at(f"{server.url}/v1", form).complete(request, listen), chunks


def asking(*messages: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(messages=messages or (Message(Role.USER, "Hi."),), **fields)


async def test_settings_have_their_names(server: LocalServer) -> None:
    settings = ModelSettings(temperature=0.5, max_tokens=9, seed=3, stop=("x",), extras={"top_p": 0.1})
    body = await body_sent(server, "chat", asking(settings=settings), max_tokens_field="max_completion_tokens")
    wanted = {"temperature": 0.5, "max_completion_tokens": 9, "seed": 3, "stop": ["x"], "top_p": 0.1}
    assert {name: body[name] for name in wanted} == wanted
    body = await body_sent(
        server, "responses", asking(settings=settings), reasoning_effort="low", reasoning_summary="auto"
    )
    wanted = {"temperature": 0.5, "max_output_tokens": 9, "top_p": 0.1, "store": False}
    assert {name: body[name] for name in wanted} == wanted
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert not {"seed", "stop"} & body.keys()


async def test_extras_are_the_last_word(server: LocalServer) -> None:
    settings = ModelSettings(extras={"reasoning_effort": "high", "model": "other"})
    body = await body_sent(server, "chat", asking(settings=settings), reasoning_effort="low")
    assert (body["reasoning_effort"], body["model"]) == ("high", "other")


@pytest.mark.parametrize("form", FORMS)
async def test_tools_are_strict_where_they_can_be(server: LocalServer, form: str) -> None:
    for strict in (True, False):
        body = await body_sent(server, form, asking(tools=(LOOK, FREE)), strict=strict)
        look, free = [tool["function"] if form == "chat" else tool for tool in body["tools"]]
        assert look["parameters"].get("required") == (["at"] if strict else None)
        assert look.get("strict", False) is strict
        assert free.get("strict", False) is False
        assert free["parameters"] == {"type": "object"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
async def test_the_choice_of_a_tool(server: LocalServer, form: str, choice: str) -> None:
    settings = ModelSettings(tool_choice=choice)
    body = await body_sent(server, form, asking(tools=(LOOK,), settings=settings), parallel_tool_calls=False)
    named = (
        {"type": "function", "function": {"name": "look"}} if form == "chat" else {"type": "function", "name": "look"}
    )
    assert body["tool_choice"] == (named if choice == "look" else choice)
    assert body["parallel_tool_calls"] is False
    # Without tools there is nothing to choose, and servers refuse the words.
    assert (
        not {"tool_choice", "parallel_tool_calls", "tools"}
        & (await body_sent(server, form, asking(settings=settings), parallel_tool_calls=False)).keys()
    )


async def test_an_output_schema_is_native_or_sent_as_text(server: LocalServer) -> None:
    form = (await body_sent(server, "chat", asking(output=ANSWER)))["response_format"]["json_schema"]
    assert (form["name"], form["strict"], form["schema"]["required"]) == ("answer", True, ["x"])
    form = (await body_sent(server, "responses", asking(output=ANSWER)))["text"]["format"]
    assert (form["type"], form["name"], form["strict"]) == ("json_schema", "answer", True)
    free = OutputSpec(name="free", schema=freeze({"type": "object"}))
    form = (await body_sent(server, "chat", asking(output=free)))["response_format"]["json_schema"]
    assert (form["strict"], form["schema"]) == (False, {"type": "object"})
    for name, field in (("chat", "messages"), ("responses", "input")):
        body = await body_sent(server, name, asking(output=ANSWER), structured_output=False)
        assert '{"x": {"type": "integer"}}' in body[field][-1]["content"]
        assert not {"response_format", "text"} & body.keys()


@pytest.mark.parametrize("form", FORMS)
async def test_a_conversation_with_everything(server: LocalServer, form: str) -> None:
    image = MediaBlock("image", url="https://example.com/a.png")
    paper = MediaBlock("document", "application/pdf", data=b"pdf", name="a.pdf")
    body = await body_sent(
        server,
        form,
        asking(
            Message(Role.SYSTEM, "Be brief."),
            Message(Role.USER, (TextBlock("See:"), image, paper)),
            Message(Role.ASSISTANT, (TextBlock("I look."), ToolCall("c", "look", {"at": "a"}))),
            Message(Role.TOOL, ToolResult("c", "seen", name="look")),
        ),
    )
    if form == "chat":
        system, user, assistant, tool = body["messages"]
        assert system == {"role": "system", "content": "Be brief."}
        assert [part["type"] for part in user["content"]] == ["text", "image_url", "file"]
        assert assistant["content"] == "I look."
        assert assistant["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at":"a"}'}
        assert tool == {"role": "tool", "tool_call_id": "c", "content": "seen"}
    else:
        system, user, said, called, output = body["input"]
        assert system["content"] == [{"type": "input_text", "text": "Be brief."}]
        assert [part["type"] for part in user["content"]] == ["input_text", "input_image", "input_file"]
        assert said == {"type": "message", "role": "assistant", "content": "I look."}
        assert called == {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"at":"a"}'}
        assert output == {"type": "function_call_output", "call_id": "c", "output": "seen"}


ASKED = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}


# -- odder answers --------------------------------------------------------------------------------


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


async def test_reasoning_of_compatible_servers_is_heard_and_kept(server: LocalServer) -> None:
    response, chunks = await stream(
        server,
        "chat",
        delta(role="assistant", reasoning_content="Let me "),
        delta(reasoning_content="think."),
        delta(content="Yes.", reasoning_content=None),
        delta("stop"),
    )
    assert (response.message.reasoning, response.message.text) == ("Let me think.", "Yes.")
    assert [(c.kind, c.text) for c in chunks] == [("reasoning", "Let me "), ("reasoning", "think."), ("text", "Yes.")]


async def test_thoughts_in_tags_are_reasoning_that_is_not_sent_back_in_responses(server: LocalServer) -> None:
    said: list[Block] = [
        ThinkingBlock("hm", "encrypted"),
        TextBlock("<think>\nTwo?\n</think>\n\nThree."),
        TextBlock("<think>Yes."),
    ]
    model = model_at(f"{server.url}/v1", "responses", think_tags="leading")
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    server.then(responses(said, 1, ASKED))
    streamed = await model.complete(asking(), listen)
    server.then(responses(said, 1, {"model": "m"}))
    whole = await model.complete(asking())
    for message in (streamed.message, whole.message):
        assert [block.text for block in message.content if isinstance(block, ThinkingBlock)] == ["hm", "Two?\n"]
        assert message.text == "Three.<think>Yes."
    assert "".join(c.text for c in heard if c.kind == "reasoning") == "hmTwo?\n"
    assert "".join(c.text for c in heard if c.kind == "text") == "Three.<think>Yes."
    server.then(responses([TextBlock("ok")], 2, {"model": "m"}))
    again = await model.complete(asking(whole.message, Message(Role.USER, "And now?")))
    sent = server.received[-1].json["input"]
    assert [item["type"] for item in sent[:3]] == ["reasoning", "message", "message"]
    assert [item["content"][0]["text"] for item in sent[1:3]] == ["Three.", "<think>Yes."]
    assert again.notes == ()


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_thoughts_in_tags_are_reasoning_that_is_not_sent_back(server: LocalServer, size: int) -> None:
    text = "<think>\nTwo or three?\n</think>\n\nThree, without `<think>`."
    wanted = ("Two or three?\n", "Three, without `<think>`.")
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    streamed, chunks = await stream(server, "chat", *(delta(content=piece) for piece in pieces), end)
    server.then(chat([TextBlock(text)], 1, {"model": "m"}))
    whole = await model_at(f"{server.url}/v1").complete(asking())

    for message in (streamed.message, whole.message):
        assert (message.reasoning, message.text) == wanted
    assert "".join(c.text for c in chunks if c.kind == "reasoning") == wanted[0]
    assert "".join(c.text for c in chunks if c.kind == "text") == wanted[1]
    server.then(chat([TextBlock("ok")], 1, {"model": "m"}))
    again = await model_at(f"{server.url}/v1").complete(asking(whole.message, Message(Role.USER, "And now?")))
    turn = server.received[-1].json["messages"][0]
    assert turn["content"] == wanted[1]
    assert not {"reasoning", "reasoning_content"} & turn.keys()
    assert again.notes == ()


@pytest.mark.parametrize(
    ("tags", "said", "wanted"),
    [
        ("leading", "<think>Hm.", ("Hm.", "")),
        ("leading", "As in:\n```\n<think>x</think>\n```", ("", "As in:\n```\n<think>x</think>\n```")),
        ("leading", "<thi", ("", "<thi")),
        ("opened", "Hm.</think>Yes.", ("Hm.", "Yes.")),
        ("off", "<think>Hm.</think>Yes.", ("", "<think>Hm.</think>Yes.")),
    ],
)
@pytest.mark.parametrize("form", FORMS)
async def test_tags_count_as_the_settings_say(
    server: LocalServer, form: str, tags: str, said: str, wanted: tuple[str, str]
) -> None:
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    server.then(chat([TextBlock(said)], 1, ASKED) if form == "chat" else responses([TextBlock(said)], 1, ASKED))
    streamed = await model_at(f"{server.url}/v1", form, think_tags=tags).complete(asking(), listen)
    assert (streamed.message.reasoning, streamed.message.text) == wanted
    assert "".join(c.text for c in heard if c.kind == "reasoning") == wanted[0]
    assert "".join(c.text for c in heard if c.kind == "text") == wanted[1]


async def test_details_of_reasoning_that_stream_are_put_together(server: LocalServer) -> None:
    part = {"type": "reasoning.text", "index": 0, "format": "x"}
    response, _ = await stream(
        server,
        "chat",
        delta(role="assistant", reasoning="a", reasoning_details=[{**part, "text": "a"}]),
        delta(reasoning="b", reasoning_details=[{**part, "text": "b", "signature": "s"}]),
        delta("stop", content="Yes."),
    )
    kept: Any = response.message.extras["openai.chat"]
    assert kept["reasoning_details"] == ({**part, "text": "ab", "signature": "s"},)


async def test_a_stream_that_ends_with_its_finish_alone_is_whole(server: LocalServer) -> None:
    response, _ = await stream(server, "chat", delta(content="pong"), delta("stop"), done="")
    assert response.message.text == "pong"


async def test_a_stream_without_its_finish_is_not(server: LocalServer) -> None:
    with pytest.raises(ConnectionLost):
        await stream(server, "chat", delta(content="pong"), done="")
    with pytest.raises(ConnectionLost):
        await stream(server, "responses", {"type": "response.output_text.delta", "delta": "po"}, done="")
    with pytest.raises(ConnectionLost):
        await stream(server, "responses", {"type": "response.output_text.delta", "delta": "po"})


async def test_an_error_in_a_stream_is_the_error_that_it_is(server: LocalServer) -> None:
    error = {"error": {"message": "busy", "type": "overloaded_error", "code": None}}
    with pytest.raises(Overloaded, match="busy"):
        await stream(server, "chat", delta(content="po"), error)
    with pytest.raises(Overloaded, match="busy"):
        await stream(server, "responses", {"type": "error", "code": "overloaded", "message": "busy"})
    failed = {"status": "failed", "error": {"code": "server_error", "message": "broke"}, "output": []}
    with pytest.raises(ProviderFailed, match="broke"):
        await stream(server, "responses", {"type": "response.failed", "response": failed})
    server.then(Answer.of(failed))
    with pytest.raises(ProviderFailed, match="broke"):
        await model_at(f"{server.url}/v1", "responses").complete(asking())


async def test_items_that_the_last_event_leaves_out_are_taken_from_the_stream(server: LocalServer) -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "pong"}]}
    response, _ = await stream(
        server,
        "responses",
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
        done="",
    )
    assert response.message.text == "pong"


async def test_parts_of_a_reasoning_are_separate_in_the_chunks(server: LocalServer) -> None:
    summary = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    item = {"type": "reasoning", "id": "r", "summary": summary}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    kind = "response.reasoning_summary_text.delta"
    response, chunks = await stream(
        server,
        "responses",
        {"type": kind, "output_index": 0, "summary_index": 0, "delta": "one"},
        {"type": kind, "output_index": 0, "summary_index": 1, "delta": "two"},
        {"type": "response.completed", "response": {"status": "completed", "output": [item, said]}},
        done="",
    )
    assert response.message.reasoning == "one\n\ntwo" == "".join(c.text for c in chunks)


@pytest.mark.parametrize("calls", [5, [5], [{"index": 0, "function": 7}], {"a": 1}])
async def test_calls_of_another_shape_are_not_an_answer(server: LocalServer, calls: Any) -> None:
    with pytest.raises(BadAnswer):
        await stream(server, "chat", delta(tool_calls=calls), delta("tool_calls"))


async def test_arguments_that_are_not_json_reach_the_loop(server: LocalServer) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": '{"at": '}}
    response, _ = await stream(server, "chat", delta(tool_calls=[call]), delta("tool_calls"))
    assert response.tool_calls == (ToolCall("c", "look", malformed='{"at": '),)


async def test_a_server_that_says_stop_behind_a_call_means_the_call(server: LocalServer) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}
    response, _ = await stream(server, "chat", delta(tool_calls=[call]), delta("stop"))
    assert response.stop_reason == "tool_calls"
