"""The promises of any model, and what is particular to this one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from locus.agent import Agent
from locus.core.errors import ModelError
from locus.core.messages import Message, RawBlock, Role, TextBlock, ToolCall, Usage
from locus.models.protocol import Chunk, Model, ModelRequest, ModelResponse, ModelSettings, OutputSpec
from locus.tools.definition import ToolSpec
from locus_plugin_anthropic.model import AnthropicModel
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_plugin_anthropic.stream import Stream
from locus_testkit.contracts import Differs, ModelContract, ModelFeatures, SentRequest
from locus_testkit.hostile import LocalServer
from locus_wire import Event
from locus_wire.errors import NotFound

from .kit import Api, answering, at_once, message_of, model_of

#: Short enough to come in one piece unless somebody listens.
_SHORT = 4096


def _drop_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [_drop_marks(inner) for inner in value] if isinstance(value, list) else value


def _sent_request(body: dict[str, Any]) -> SentRequest:
    return SentRequest(messages=_drop_marks(body["messages"]), system=body.get("system"), tools=body.get("tools"))


#: The servers of models that are under test.
_SERVERS: dict[Any, LocalServer] = {}


class TestStreamingModel(ModelContract):
    """Answers that are streamed although nobody listens, because they may take long."""

    features = ModelFeatures(
        exact=True,
        parallel_tools=True,
        structured_output=True,
        max_tokens=True,
        thinking=True,
        raw_blocks=True,
        deadline=True,
        wire=True,
        moves=True,
    )

    def make_model(self, *answers: Any) -> Model:
        return model_of(Api(*answers))

    def make_relative(self, differs: Differs, *answers: Any) -> Model:
        if differs == "host":
            return model_of(Api(*answers), base_url="https://gateway.example")
        return model_of(Api(*answers), "sonnetish-1")

    def sent_requests(self, model: Any) -> Sequence[SentRequest]:
        return [_sent_request(body) for body in model._client.bodies]


class TestModelOverHttp(ModelContract):
    """Answers through a socket, in one piece unless somebody listens."""

    features = evolve(TestStreamingModel.features, failures=True)

    def make_model(self, *answers: Any) -> Model:
        return self._make(*answers)

    def make_relative(self, differs: Differs, *answers: Any) -> Model:
        return self._make(*answers, host="localhost") if differs == "host" else self._make(*answers, name="other-1")

    def _make(self, *answers: Any, host: str = "127.0.0.1", name: str = "claude-sonnet-5-5") -> Model:
        server = LocalServer(answering(*answers)).__enter__()
        url = server.url.replace("127.0.0.1", host)
        model = AnthropicModel(name, AnthropicSettings(base_url=url, max_tokens=_SHORT))
        _SERVERS[model] = server
        return model

    async def close_model(self, model: Any) -> None:
        server = _SERVERS.pop(model)
        assert server.wait_until_idle(), f"{server.open} connections were left open"
        server.__exit__(None, None, None)

    def sent_requests(self, model: Any) -> Sequence[SentRequest]:
        return [_sent_request(received.json) for received in _SERVERS[model].received]


def _make_request(text: str = "Hi.", **more: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(Role.USER, text),), **more)


async def _stream(model: Model, request: ModelRequest) -> tuple[ModelResponse, list[Chunk]]:
    chunks: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        chunks.append(chunk)

    return await model.complete(request, listen), chunks


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
SAID = {"type": "text", "text": "It is so."}


@pytest.mark.anyio
@pytest.mark.parametrize("settings", [{}, {"max_tokens": _SHORT}], ids=["streamed", "whole"])
async def test_paused_turn_is_gone_on_with(settings: dict[str, Any]) -> None:
    # Given a server that pauses its own long turn twice.
    first, second = (message_of(SEARCH, stop_reason="pause_turn"), message_of(FOUND, stop_reason="pause_turn"))
    api = Api(first, second, message_of(SAID))
    # When it is asked once.
    response = await model_of(api, **settings).complete(_make_request())
    # Then what it has done so far goes back as it came, and the turn is one.
    assert [body["messages"][1:] for body in api.bodies] == [
        [],
        [{"role": "assistant", "content": [SEARCH]}],
        [{"role": "assistant", "content": [SEARCH, FOUND]}],
    ]
    assert response.message.text == "It is so."
    assert [type(block) for block in response.message.content] == [RawBlock, RawBlock, TextBlock]
    assert response.usage == Usage(prompt_tokens=30, completion_tokens=15)
    assert response.stop_reason == "stop"


@pytest.mark.anyio
async def test_arguments_after_a_pause_are_distinguished_from_those_before() -> None:
    begun = {"type": "message_start", "message": message_of(stop_reason="tool_use")}
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    events = [
        begun,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"n": '}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    response = await model_of(Api(message_of(SEARCH, stop_reason="pause_turn"), events)).complete(_make_request())
    assert response.tool_calls == (ToolCall("toolu_1", "look", malformed='{"n": '),)


@pytest.mark.anyio
async def test_turn_that_pauses_for_ever_ends() -> None:
    api = Api(*[message_of(SEARCH, stop_reason="pause_turn") for _ in range(50)])
    assert (await model_of(api).complete(_make_request())).stop_reason == "other"
    assert len(api.bodies) < 20


@pytest.mark.anyio
async def test_answer_is_streamed_where_it_may_take_long() -> None:
    api = Api("a", "b", "c")
    model = model_of(api)
    await model.complete(_make_request())
    await model.complete(_make_request(settings=ModelSettings(max_tokens=1000)))
    await _stream(model, _make_request(settings=ModelSettings(max_tokens=1000)))
    assert [body.get("stream", False) for body in api.bodies] == [True, False, True]


@pytest.mark.anyio
async def test_what_a_broken_stream_has_used_is_reported() -> None:
    begun = message_of(usage={"input_tokens": 40, "output_tokens": 1})
    api = Api(message_of(SEARCH, stop_reason="pause_turn"), [{"type": "message_start", "message": begun}])
    with pytest.raises(ModelError) as caught:
        await model_of(api).complete(_make_request())
    assert caught.value.usage == Usage(prompt_tokens=50, completion_tokens=6)


@pytest.mark.anyio
async def test_failure_before_anything_was_used_tells_no_usage() -> None:
    with pytest.raises(ModelError) as caught:
        await model_of(Api(ModelError("no", status=500))).complete(_make_request())
    assert caught.value.usage is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("listing", "hint"),
    [
        (
            {"data": [{"id": "claude-sonnet-5-5"}, {"id": "claude-haiku-4-5"}]},
            "did you mean anthropic:claude-sonnet-5-5",
        ),
        ({"data": [{"id": "quite-another"}]}, ""),
        ({"data": [{"id": "claude-sonet-5-5"}]}, ""),  # it is there: something else is not
        (ModelError("no list", status=500), ""),
    ],
    ids=["misspelled", "nothing near", "not the model", "no list"],
)
async def test_unknown_model_names_the_nearest(listing: Any, hint: str) -> None:
    api = Api(ModelError("not found", status=404), listing)
    with pytest.raises(NotFound) as caught:
        await model_of(api, "claude-sonet-5-5").complete(_make_request())
    assert hint in str(caught.value)
    assert ("did you mean" in str(caught.value)) is bool(hint)


CITY = OutputSpec(name="city", schema={"type": "object", "properties": {"name": {"type": "string"}}})
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def _call_form(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given}


@pytest.mark.anyio
async def test_answer_by_a_tool_is_text_and_streams_as_text() -> None:
    api = Api(message_of(THOUGHT, SAID, _call_form("final_answer", {"name": "Köln"})), "Bye.")
    model = model_of(api, structured="tool")
    response, chunks = await _stream(model, _make_request(output=CITY))
    assert response.message.text == '{"name": "Köln"}'
    assert response.stop_reason == "stop"
    assert "".join(chunk.text for chunk in chunks if chunk.kind == "text") == response.message.text
    assert "".join(chunk.text for chunk in chunks if chunk.kind == "reasoning") == "hm"
    assert not [chunk for chunk in chunks if chunk.kind == "tool_call"]
    # What the API signed goes back to it.
    await model.complete(ModelRequest(messages=(*_make_request().messages, response.message)))
    assert api.bodies[1]["messages"][1]["content"][0] == THOUGHT


@pytest.mark.anyio
async def test_answer_beside_other_calls_waits_for_their_results() -> None:
    look = ToolSpec(name="look", description="Looks.", parameters={"type": "object"})
    api = Api(message_of(_call_form("look", {"n": 1}), _call_form("final_answer", {})))
    response, chunks = await _stream(model_of(api, structured="tool"), _make_request(tools=(look,), output=CITY))
    assert [call.name for call in response.tool_calls] == ["look"]
    assert "".join(chunk.text for chunk in chunks) == '{"n": 1}'


@pytest.mark.anyio
async def test_tokens_are_counted_by_the_server() -> None:
    api = Api({"input_tokens": 14})
    model = model_of(api)
    assert await model.count_tokens(_make_request(settings=ModelSettings(max_tokens=5, stop=("x",)))) == 14
    assert api.paths == ["/v1/messages/count_tokens"]
    assert api.bodies[0].keys() == {"model", "messages"}


@pytest.mark.anyio
async def test_agent_sends_back_what_it_got_and_all_results_at_once() -> None:
    # Given a model that thinks, says something, and asks for two calls.
    said: list[dict[str, Any]] = [
        THOUGHT,
        {**SAID, "citations": None},
        _call_form("look", {"n": 1}),
        {**_call_form("look", {"n": 2}), "id": "b"},
    ]
    api = Api(message_of(*said), "Done.")

    def look(n: int) -> str:
        """Looks."""
        return f"seen {n}"

    # When an agent runs on it.
    result = await Agent(model_of(api), tools=[look]).run("Look.")
    # Then its turn goes back as it came, and both results are one turn.
    assert result.text == "Done."
    _, turn, results = _drop_marks(api.bodies[1]["messages"])
    assert turn["content"] == said
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_look", "content": "seen 1"},
        {"type": "tool_result", "tool_use_id": "b", "content": "seen 2"},
    ]
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (20, 10)


def test_what_the_prompt_took_is_known_before_the_answer_ends() -> None:
    chunks: list[Chunk] = []

    async def hear(chunk: Chunk) -> None:
        chunks.append(chunk)

    stream = Stream(hear)
    start = message_of() | {"usage": {"input_tokens": 90, "output_tokens": 1, "cache_read_input_tokens": 10}}
    at_once(stream.take(Event(json.dumps({"type": "message_start", "message": start}))))
    assert chunks == [Chunk("", usage=Usage(prompt_tokens=100, completion_tokens=1, cached_tokens=10))]
