"""What a model answers: text, tool calls, structured output, streamed or not, with its usage."""

from __future__ import annotations

import json

import anyio.lowlevel
import pytest
from attrs import evolve

from locus.core import encode, freeze, thaw
from locus.core.messages import Message, Role, Usage
from locus.models import Chunk, Model, ModelRequest, ModelResponse, ModelSettings, OutputSpec, Price
from locus_testkit.contracts._model import (
    TEMPERATURE,
    MakeModel,
    Promises,
    build_request,
    check_calls,
    check_text,
    result_of,
)
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import call

__all__ = ["AnswerPromises"]

_PONG = "Answer with the one word pong, nothing else."
_PARIS = "What is the temperature in Paris? Use the tool."
_BOTH = "What is the temperature in Paris and in Rome? Call the tool for both cities in one turn."

#: Combining and right-to-left marks, astral planes, joined emoji, quotes: what careless code cuts in half.
_ODD = 'e\u0301 \u00e9 \u4e2d\u6587 \u05e2\u05d1 \u202e \U0001f469\u200d\U0001f4bb "\\" \t\n <|end|>'

_CITY = OutputSpec(
    name="city",
    schema=freeze(
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "inhabitants": {"type": "integer"}},
            "required": ["name", "inhabitants"],
            "additionalProperties": False,
        }
    ),
)


class AnswerPromises(Promises):
    """One request, one response, the same whether it is streamed or not."""

    async def test_model_is_a_model_with_a_full_name(self, make: MakeModel) -> None:
        """The name is ``"provider:model"``, and the price, where there is one, a `Price`."""
        model = await make()
        assert isinstance(model, Model)
        provider, colon, rest = model.name.partition(":")
        assert provider
        assert colon
        assert rest
        assert isinstance(getattr(model, "price", None), Price | None)

    async def test_text_is_answered(self, make: MakeModel) -> None:
        """A question without tools gets text and the stop reason "stop"."""
        response = await (await make("pong")).complete(build_request(_PONG))
        assert check_text(response).strip()
        assert response.stop_reason == "stop"
        assert isinstance(response.model, str)
        if self.features.exact:
            assert response.message.text == "pong"

    @needs("exact")
    async def test_empty_answer_is_an_answer(self, make: MakeModel) -> None:
        """A provider that returns nothing does not crash the model."""
        assert check_text(await (await make("")).complete(build_request(_PONG))) == ""

    async def test_request_is_left_as_it_was(self, make: MakeModel) -> None:
        """Answering changes neither the messages nor the tools that the caller keeps."""
        # A copy: what a broken model writes into must not reach the other tests.
        spec = evolve(TEMPERATURE, parameters=thaw(TEMPERATURE.parameters))
        request = build_request(_PARIS, tools=(spec,))
        before = encode(request)
        await (await make("21")).complete(request)
        assert encode(request) == before

    async def test_settings_are_accepted(self, make: MakeModel) -> None:
        """Every setting has an effect or none, but never an error."""
        settings = ModelSettings(temperature=0.0, max_tokens=50, seed=1, stop=("\n\n\n",))
        check_text(await (await make("pong")).complete(build_request(_PONG, settings=settings)))

    @needs("max_tokens")
    async def test_answer_that_was_cut_off_says_so(self, make: MakeModel) -> None:
        """An answer that reached ``max_tokens`` has the stop reason "length"."""
        cut = ModelResponse(
            message=Message(Role.ASSISTANT, "one two"),
            usage=Usage(prompt_tokens=9, completion_tokens=2),
            stop_reason="length",
        )
        request = build_request("Count from one to one hundred in words.", settings=ModelSettings(max_tokens=2))
        assert (await (await make(cut)).complete(request)).stop_reason == "length"

    async def test_unusual_text_goes_both_ways_unharmed(self, make: MakeModel) -> None:
        """No character is lost, normalised or cut in half, streamed or not."""
        for listening in (False, True):
            response, pieces = await _collect(
                await make(_ODD), build_request(f"Repeat this: {_ODD}"), listening=listening
            )
            said = check_text(response)
            if self.features.exact:
                assert said == _ODD
            if listening and self.features.streaming:
                assert "".join(p.text for p in pieces if p.kind == "text") == said

    @needs("exact")
    async def test_long_answer_is_whole(self, make: MakeModel) -> None:
        """An answer of 100,000 characters arrives with all of them, streamed or not."""
        long = "0123456789" * 10_000
        for listening in (False, True):
            response, _ = await _collect(await make(long), build_request("Say a lot."), listening=listening)
            assert response.message.text == long

    # -- tools ------------------------------------------------------------------------------------

    @needs("tools")
    async def test_tool_call_and_its_result(self, make: MakeModel) -> None:
        """The model asks for a call, gets its result and answers."""
        model = await make(call("temperature", city="Paris"), "It is 21 degrees in Paris.")
        first = await model.complete(build_request(_PARIS, tools=(TEMPERATURE,)))
        calls = check_calls(first)
        if self.features.exact:
            assert [dict(c.arguments) for c in calls] == [{"city": "Paris"}]
        request = build_request(_PARIS, first.message, *map(result_of, calls), tools=(TEMPERATURE,))
        assert check_text(await model.complete(request)).strip()

    @needs("parallel_tools")
    async def test_several_tool_calls_and_their_results(self, make: MakeModel) -> None:
        """Calls of one turn come in order, and each result finds its call."""
        both = [call("temperature", city="Paris"), call("temperature", city="Rome")]
        model = await make(both, "It is 21 degrees in Paris and 25 in Rome.")
        first = await model.complete(build_request(_BOTH, tools=(TEMPERATURE,)))
        calls = check_calls(first)
        assert len(calls) == 2
        if self.features.exact:
            assert [c.arguments["city"] for c in calls] == ["Paris", "Rome"]
        results = [result_of(c, t) for c, t in zip(calls, ("21", "25"), strict=True)]
        request = build_request(_BOTH, first.message, *results, tools=(TEMPERATURE,))
        assert check_text(await model.complete(request)).strip()

    @needs("tools")
    async def test_failed_call_can_be_reported(self, make: MakeModel) -> None:
        """A result that is an error is accepted like any other."""
        model = await make(call("temperature", city="Paris"), "I could not find out.")
        first = await model.complete(build_request(_PARIS, tools=(TEMPERATURE,)))
        failed = [result_of(c, "Error: TimeoutError: no answer", is_error=True) for c in check_calls(first)]
        response = await model.complete(build_request(_PARIS, first.message, *failed))
        assert check_text(response).strip()

    # -- streaming --------------------------------------------------------------------------------

    @needs("streaming")
    async def test_streamed_answer_is_the_same_answer(self, make: MakeModel) -> None:
        """The pieces make up the text of the response, and listening does not change the response."""
        response, pieces = await _collect(await make("pong ping pong"), build_request(_PONG), listening=True)
        assert "".join(p.text for p in pieces if p.kind == "text") == check_text(response)
        assert "".join(p.text for p in pieces if p.kind == "reasoning") == response.message.reasoning
        assert {p.kind for p in pieces} <= {"text", "reasoning", "tool_call"}
        if self.features.exact:
            plain, _ = await _collect(await make("pong ping pong"), build_request(_PONG), listening=False)
            assert response == plain

    @needs("streaming", "tools")
    async def test_streamed_tool_call_is_the_same_call(self, make: MakeModel) -> None:
        """Pieces of a call's arguments, where they are shown, make up the arguments; they are not text."""
        model = await make(call("temperature", city="Paris"))
        response, pieces = await _collect(model, build_request(_PARIS, tools=(TEMPERATURE,)), listening=True)
        calls = check_calls(response)
        shown = "".join(p.text for p in pieces if p.kind == "tool_call")
        if shown and len(calls) == 1:
            assert json.loads(shown) == dict(calls[0].arguments)
        assert "".join(p.text for p in pieces if p.kind == "text") == response.message.text

    @needs("streaming")
    async def test_pieces_wait_for_a_slow_listener(self, make: MakeModel) -> None:
        """Each piece is awaited before the next: a slow listener slows the model and loses nothing."""
        inside: list[Chunk] = []
        heard: list[str] = []

        async def listen(chunk: Chunk) -> None:
            assert inside == []
            inside.append(chunk)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            inside.clear()
            heard.append(chunk.text if chunk.kind == "text" else "")

        response = await (await make("pong ping pong")).complete(build_request(_PONG), listen)
        assert inside == []
        assert "".join(heard) == response.message.text

    @needs("streaming")
    async def test_listener_that_fails_ends_the_call(self, make: MakeModel) -> None:
        """What ``on_chunk`` raises comes out of the call: nothing swallows it, no further piece is shown."""
        heard: list[Chunk] = []

        async def listen(chunk: Chunk) -> None:
            heard.append(chunk)
            raise _Enough

        with pytest.raises(_Enough):
            await (await make("pong ping pong")).complete(build_request(_PONG), listen)
        assert len(heard) == 1

    # -- usage and structure ----------------------------------------------------------------------

    async def test_usage_is_reported(self, make: MakeModel) -> None:
        """Tokens are counted, parts are not more than their whole."""
        _check_usage((await (await make("pong")).complete(build_request(_PONG))).usage)

    @needs("streaming")
    async def test_usage_is_reported_when_streaming(self, make: MakeModel) -> None:
        """... also where the provider tells the usage only at the end of the stream."""
        response, _ = await _collect(await make("pong"), build_request(_PONG), listening=True)
        _check_usage(response.usage)

    @needs("structured_output")
    async def test_output_follows_its_schema(self, make: MakeModel) -> None:
        """With an `OutputSpec` the text is JSON of that schema, and nothing else."""
        model = await make('{"name": "Paris", "inhabitants": 2103000}')
        response = await model.complete(build_request("Which city is the capital of France?", output=_CITY))
        data = json.loads(check_text(response))
        assert isinstance(data, dict)
        assert {name: type(value) for name, value in data.items()} == {"name": str, "inhabitants": int}


class _Enough(Exception):
    """Raised by a listener that has enough."""


async def _collect(model: Model, request: ModelRequest, *, listening: bool) -> tuple[ModelResponse, list[Chunk]]:
    pieces: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        pieces.append(chunk)

    return await model.complete(request, listen if listening else None), pieces


def _check_usage(usage: Usage) -> None:
    counts = (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )
    assert all(type(n) is int and n >= 0 for n in counts)
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.cached_tokens + usage.cache_write_tokens <= usage.prompt_tokens
    assert usage.reasoning_tokens <= usage.completion_tokens
    assert usage.cost is None or usage.cost >= 0
