"""What a script means, turn by turn, and what happens at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus import Agent
from locus.core.errors import ModelError
from locus.core.messages import Block, Message, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models.protocol import Chunk, ModelRequest, ModelResponse, Price
from locus_testkit import DEFAULT_USAGE, ScriptedModel, ScriptExhausted, Turn, blocks_of, call, malformed_call

pytestmark = pytest.mark.anyio


def make_request(*texts: str) -> ModelRequest:
    """User and assistant turns, in alternation."""
    roles = (Role.USER, Role.ASSISTANT)
    return ModelRequest(messages=tuple(Message(roles[i % 2], text) for i, text in enumerate(texts)))


HELLO = make_request("Hello.")


async def answer(model: ScriptedModel, request: ModelRequest = HELLO) -> Message:
    return (await model.complete(request)).message


# -- turns ----------------------------------------------------------------------------------------


async def test_text_is_a_final_answer() -> None:
    response = await ScriptedModel("Hi.", name="test:small").complete(HELLO)
    assert response == ModelResponse(
        message=Message(Role.ASSISTANT, "Hi."), usage=DEFAULT_USAGE, stop_reason="stop", model="test:small"
    )


async def test_call_is_a_tool_call() -> None:
    response = await ScriptedModel(call("search", query="x", limit=[1])).complete(HELLO)
    (made,) = response.tool_calls
    assert (made.name, made.arguments) == ("search", {"query": "x", "limit": (1,)})
    assert response.stop_reason == "tool_calls"


async def test_argument_may_be_called_name() -> None:
    (made,) = (await answer(ScriptedModel(call("greet", name="Ada")))).tool_calls
    assert made.arguments == {"name": "Ada"}


async def test_malformed_call_keeps_its_text() -> None:
    (made,) = (await answer(ScriptedModel(malformed_call("search", '{"query": ')))).tool_calls
    assert (made.arguments, made.malformed) == ({}, '{"query": ')


@pytest.mark.parametrize(
    "kind",
    [
        lambda blocks: ["Hi.", blocks[1]],
        list,
        lambda blocks: Message(Role.ASSISTANT, blocks),
        lambda blocks: ModelResponse(message=Message(Role.ASSISTANT, blocks)),
    ],
    ids=["texts and blocks", "blocks", "message", "response"],
)
def test_blocks_of_a_turn_are_the_same_however_it_is_written(kind: Callable[[tuple[Block, ...]], Turn]) -> None:
    blocks = (TextBlock("Hi."), call("search", query="x"))
    assert blocks_of(kind(blocks)) == blocks


def test_blocks_of_a_text_are_one_also_where_it_is_empty() -> None:
    assert blocks_of("Hi.") == (TextBlock("Hi."),)
    assert blocks_of("") == (TextBlock(""),)
    assert blocks_of(call("search")) == (call("search"),)


async def test_list_holds_texts_calls_and_blocks_in_order() -> None:
    said = await answer(ScriptedModel([ThinkingBlock("hm", "sig"), "Let me see.", call("a"), call("b")]))
    assert [type(block) for block in said.content] == [ThinkingBlock, TextBlock, ToolCall, ToolCall]


async def test_message_and_response_are_given_as_they_are() -> None:
    message = Message(Role.ASSISTANT, "As it is.", extras={"id": "msg_1"})
    response = ModelResponse(message=message, usage=Usage(prompt_tokens=1), stop_reason="length", model="m")
    model = ScriptedModel(message, response)
    assert await answer(model) is message
    assert await model.complete(HELLO) is response


async def test_exception_is_raised_each_time_it_is_reached() -> None:
    failure = ModelError("overloaded", retryable=True)
    model = ScriptedModel(failure, after="repeat")
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        assert caught.value is failure


async def test_function_is_asked_with_the_request() -> None:
    async def later(request: ModelRequest) -> Turn:
        await anyio.lowlevel.checkpoint()
        return f"You said {request.messages[-1].text}"

    model = ScriptedModel(later, lambda request: call("count", n=len(request.messages)), lambda _: ModelError("no"))
    assert (await answer(model)).text == "You said Hello."
    assert (await answer(model)).tool_calls[0].arguments == {"n": 1}
    with pytest.raises(ModelError):
        await model.complete(HELLO)


@pytest.mark.parametrize(
    ("turn", "hint"),
    [
        (None, "turn 2 is None"),
        (ModelError, r"turn 2 is the class ModelError: give an instance, ModelError\(...\)"),
        (Message(Role.USER, "hi"), "turn 2 is a message of the role 'user'"),
        (["text", 1], "turn 2 holds 1"),
    ],
)
async def test_turn_of_no_kind_is_refused_when_the_model_is_made(turn: Any, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        ScriptedModel("Hi.", turn)


async def test_turn_of_no_kind_from_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="a function of the script returned a turn that is 1"):
        await ScriptedModel(lambda _: 1).complete(HELLO)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("options", [{"after": "stop"}, {"ids": "random"}, {"chunks": 0}, {"script": lambda _: []}])
async def test_option_that_does_not_exist_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ScriptedModel("Hi.", **options)


# -- the end of the script ------------------------------------------------------------------------


async def test_script_that_runs_out_says_what_was_asked() -> None:
    model = ScriptedModel("Hi.")
    await model.complete(HELLO)
    with pytest.raises(ScriptExhausted, match=r"scripted with 1 turn\(s\), all used.*And now\?") as caught:
        await model.complete(make_request("Hello.", "Hi.", "And now?"))
    assert isinstance(caught.value, AssertionError)
    assert (caught.value.turns, len(caught.value.request.messages)) == (1, 3)
    assert model.overrun is caught.value


async def test_last_turn_can_repeat_and_the_script_can_cycle() -> None:
    repeating, cycling = ScriptedModel("a", "b", after="repeat"), ScriptedModel("a", "b", after="cycle")
    assert [(await answer(repeating)).text for _ in range(4)] == ["a", "b", "b", "b"]
    assert [(await answer(cycling)).text for _ in range(4)] == ["a", "b", "a", "b"]


async def test_requests_are_kept_and_turns_counted() -> None:
    model = ScriptedModel("a", "b")
    assert (model.requests, model.remaining) == ((), 2)
    await model.complete(HELLO)
    assert (model.requests, model.remaining) == ((HELLO,), 1)
    assert repr(model) == "<ScriptedModel 'scripted:model': 1 request(s), 1 turn(s) left>"


# -- ids, usage, price ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("unique", ["call_1_1", "call_1_2", "call_2_1"]),
        ("per_turn", ["call_1", "call_2", "call_1"]),
        ("same", ["call", "call", "call"]),
    ],
)
async def test_calls_get_ids_as_asked_for(ids: Any, expected: list[str]) -> None:
    model = ScriptedModel([call("a"), call("b")], call("a"), ids=ids)
    assert [c.id for _ in range(2) for c in (await answer(model)).tool_calls] == expected


async def test_id_that_is_given_stays() -> None:
    (made,) = (await answer(ScriptedModel(ToolCall("mine", "a")))).tool_calls
    assert made.id == "mine"


async def test_usage_is_constant_unless_said_otherwise() -> None:
    own = Usage(prompt_tokens=3, completion_tokens=1)
    assert (await ScriptedModel("Hi.").complete(HELLO)).usage == Usage(prompt_tokens=10, completion_tokens=5)
    assert (await ScriptedModel("Hi.", usage=own).complete(HELLO)).usage == own
    counted = ScriptedModel("Hi.", usage=lambda request, said: Usage(prompt_tokens=len(request.messages)))
    assert (await counted.complete(HELLO)).usage == Usage(prompt_tokens=1)


async def test_price_is_charged_by_the_run() -> None:
    agent: Agent[Any, Any] = Agent(ScriptedModel("Hi.", price=Price(prompt=1.0, completion=2.0)))
    assert (await agent.run("Hello.")).cost == pytest.approx(20e-6)


# -- streaming ------------------------------------------------------------------------------------


async def pieces(model: ScriptedModel) -> list[Chunk]:
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    await model.complete(HELLO, listen)
    return heard


async def test_nothing_streams_unless_asked_for() -> None:
    assert await pieces(ScriptedModel("one two")) == []


async def test_words_keep_their_blanks() -> None:
    assert [c.text for c in await pieces(ScriptedModel(" one  two\n", chunks=True))] == [" one", "  two", "\n"]


async def test_pieces_have_the_size_asked_for() -> None:
    assert [c.text for c in await pieces(ScriptedModel("abcde", chunks=2))] == ["ab", "cd", "e"]


async def test_reasoning_and_calls_stream_as_what_they_are() -> None:
    heard = await pieces(ScriptedModel([ThinkingBlock("hm"), "Yes", call("f", x=1)], chunks=100))
    assert heard == [Chunk("hm", "reasoning"), Chunk("Yes", "text"), Chunk('{"x": 1}', "tool_call")]


# -- many runs ------------------------------------------------------------------------------------


async def test_script_by_conversation_does_not_depend_on_the_order_of_requests() -> None:
    scripts: dict[str, list[Turn]] = {"one": ["1.1", "1.2"], "two": ["2.1", "2.2"]}
    model = ScriptedModel(script=lambda request: scripts[request.messages[0].text])
    assert (await answer(model, make_request("two", "2.1", "go on"))).text == "2.2"
    assert (await answer(model, make_request("one"))).text == "1.1"
    assert (await answer(model, make_request("two"))).text == "2.1"
    with pytest.raises(ScriptExhausted):
        await model.complete(make_request("one", "1.1", "go on", "1.2", "go on"))


async def test_concurrent_runs_share_one_model() -> None:
    def look(at: str) -> str:
        """Look at something."""
        return f"saw {at}"

    def script(request: ModelRequest) -> list[Turn]:
        name = request.messages[0].text
        return [call("look", at=name), f"done {name}"]

    agent: Agent[Any, Any] = Agent(ScriptedModel(script=script), tools=[look])
    answers: dict[str, str] = {}

    async def run(name: str) -> None:
        answers[name] = (await agent.run(name)).text

    async with anyio.create_task_group() as group:
        for i in range(20):
            group.start_soon(run, f"run-{i}")
    assert answers == {f"run-{i}": f"done run-{i}" for i in range(20)}


async def test_every_request_gets_a_turn_of_its_own() -> None:
    model = ScriptedModel(*map(str, range(50)))
    given: list[str] = []

    async def ask() -> None:
        given.append((await answer(model)).text)

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(ask)
    assert sorted(given, key=int) == list(map(str, range(50)))
