"""Each promise of the model contract fails for a model that breaks it."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import evolve

from locus.core.codec import encode
from locus.core.errors import ModelError
from locus.core.messages import Message, RawBlock, Role, TextBlock, ToolCall, Usage
from locus.models import describe_left_out, make_plain
from locus.models.protocol import Chunk, Model, ModelRequest, ModelResponse, OnChunk
from locus_testkit import ModelContract, ModelFeatures, ScriptedModel, SentRequest, Turn

pytestmark = pytest.mark.proof

PROMISES = sorted(name for name in dir(ModelContract) if name.startswith("test_"))

ALL = ModelFeatures(
    exact=True,
    parallel_tools=True,
    structured_output=True,
    max_tokens=True,
    thinking=True,
    raw_blocks=True,
    failures=True,
    deadline=True,
    wire=True,
    moves=True,
)


class Wrapper:
    """A good model, to be broken."""

    name = "broken:model"

    def __init__(self, *answers: Turn, host: str = "here") -> None:
        self.inner, self.host = ScriptedModel(*answers, chunks=True), host

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        asked, notes = self.read(request)
        return self.sign(self.response(await self.inner.complete(self.request(asked), on_chunk)), notes)

    def read(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        """What this model can read of a request, and what it cannot."""
        theirs = {m: make_plain(m) for m in request.messages if m.role is Role.ASSISTANT and not self.wrote(m)}
        kept = tuple(known for m in request.messages if (known := theirs.get(m, m)) is not None)
        after = [plain for plain in theirs.values() if plain is not None]
        return evolve(request, messages=kept), describe_left_out(theirs, after)

    def wrote(self, message: Message) -> bool:
        return message.extras.get("host") == self.host

    def sign(self, response: ModelResponse, notes: tuple[str, ...]) -> ModelResponse:
        return evolve(response, message=evolve(response.message, extras={"host": self.host}), notes=notes)

    def request(self, request: ModelRequest) -> ModelRequest:
        return request

    def response(self, response: ModelResponse) -> ModelResponse:
        return response


class Made(ModelContract):
    """The contract with every feature, over one kind of model, called by hand."""

    features = ALL
    patience = 0.2

    def __init__(self, kind: type[Wrapper]) -> None:
        self.kind = kind

    def make_model(self, *answers: Turn) -> Wrapper:
        return self.kind(*answers)

    def make_relative(self, differs: str, *answers: Turn) -> Wrapper:
        return self.kind(*answers, host="there")

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        assert isinstance(model, Wrapper)
        return [
            SentRequest(messages=[encode(m) for m in r.messages], tools=encode(r.tools)) for r in model.inner.requests
        ]

    async def keep(self, promise: str) -> None:
        """Run one test of the contract, with the first of its parameters."""
        test = getattr(self, promise)
        given: dict[str, Any] = {}
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "parametrize":
                given = dict(zip(mark.args[0], mark.args[1][0], strict=True))
        if "make" in inspect.signature(test).parameters:
            given["make"] = self._make
        await test(**given)

    async def _make(self, *answers: Turn, differs: str | None = None) -> Model:
        return self.make_model(*answers) if differs is None else self.make_relative(differs, *answers)


# -- models that break one promise each -----------------------------------------------------------


class NameWithoutProvider(Wrapper):
    name = "broken"


class EndsForNoReason(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        return evolve(response, stop_reason="other")


class FailsOnNothing(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        if not response.message.content:
            raise ModelError("the provider returned nothing")
        return response


class WritesIntoTheTools(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        for spec in request.tools:
            dict.__setitem__(spec.parameters, "strict", True)
        return request


class RefusesStopTexts(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        if request.settings.stop:
            raise ModelError("stop is not supported")
        return request


class AlwaysStops(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        return evolve(response, stop_reason="stop")


class Normalises(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        text = unicodedata.normalize("NFC", response.message.text)
        return evolve(response, message=Message(Role.ASSISTANT, text))


class CutsAnswers(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        return evolve(response, message=Message(Role.ASSISTANT, response.message.text[:65_536]))


class SaysItsCalls(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        if not response.tool_calls:
            return response
        return evolve(response, message=Message(Role.ASSISTANT, str(response.tool_calls)), stop_reason="stop")


class MakesOneCall(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        return evolve(response, message=evolve(response.message, content=response.message.content[:1]))


class ForgetsErrors(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        if any(result.is_error for message in request.messages for result in message.tool_results):
            raise ModelError("unknown field is_error")
        return request


class StreamsAnotherText(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        async def stripped(chunk: Chunk) -> None:
            assert on_chunk is not None
            await on_chunk(evolve(chunk, text=chunk.text.strip()))

        return await super().complete(request, None if on_chunk is None else stripped)


class StreamsCallsAsText(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        async def as_text(chunk: Chunk) -> None:
            assert on_chunk is not None
            await on_chunk(evolve(chunk, kind="text"))

        return await super().complete(request, None if on_chunk is None else as_text)


class ShowsPiecesAllAtOnce(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        response = await super().complete(request)

        async def show(word: str) -> None:
            if on_chunk is not None:
                await on_chunk(Chunk(word))

        async with anyio.create_task_group() as group:
            for word in response.message.text.split():
                group.start_soon(show, word)
        return response


class SwallowsWhatListenersRaise(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        async def guarded(chunk: Chunk) -> None:
            assert on_chunk is not None
            try:
                await on_chunk(chunk)
            except Exception:  # noqa: BLE001  # what it is about
                return

        return await super().complete(request, None if on_chunk is None else guarded)


class CountsNothing(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        return evolve(response, usage=Usage())


class CountsNothingWhenStreaming(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        response = await super().complete(request, on_chunk)
        return response if on_chunk is None else evolve(response, usage=Usage())


class FencesItsJson(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        return evolve(response, message=Message(Role.ASSISTANT, f"```json\n{response.message.text}\n```"))


class KeepsOnlyText(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        return evolve(request, messages=tuple(map(self._plain, request.messages)))

    def _plain(self, message: Message) -> Message:
        kept = (TextBlock, ToolCall)
        if message.role is not Role.ASSISTANT:
            return message
        return evolve(message, content=tuple(b for b in message.content if isinstance(b, kept)))


class SaysMoreThanItWasTold(Wrapper):
    def response(self, response: ModelResponse) -> ModelResponse:
        blocks = (evolve(b, extras={"n": 1}) if isinstance(b, TextBlock) else b for b in response.message.content)
        return evolve(response, message=evolve(response.message, content=tuple(blocks)))


class NumbersItsRequests(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        told = Message(Role.SYSTEM, f"This is request {len(self.inner.requests)}.")
        return evolve(request, messages=(told, *request.messages))


class WantsUniqueIds(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        ids = [call.id for message in request.messages for call in message.tool_calls]
        if len(ids) != len(set(ids)):
            raise ModelError("duplicate tool call id")
        return request


class KnowsOnlyItsOwnBlocks(Wrapper):
    def read(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        for message in request.messages:
            for block in message.content:
                if isinstance(block, RawBlock):
                    raise KeyError(block.provider)
        return super().read(request)


class EncodesCarelessly(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        for message in request.messages:
            message.text.encode()
        return request


class OverflowsWithoutAType(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        if sum(len(message.text) for message in request.messages) > 100_000:
            raise RuntimeError("400: maximum context length exceeded")
        return request


class SwallowsCancellation(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except anyio.get_cancelled_exc_class():
            return ModelResponse(message=Message(Role.ASSISTANT, "cut off"))


class StreamsOnWhenCancelled(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        # A list and not a return inside: a scope may swallow what leaves it, as far as the types know.
        made: list[ModelResponse] = []
        with anyio.CancelScope(shield=True):
            made.append(await super().complete(request, on_chunk))
        return made[0]


class IgnoresDeadlines(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        return evolve(request, deadline=None)


class FailsWithoutAType(Wrapper):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except ModelError as e:
            raise RuntimeError(str(e)) from e


class RefusesResults(Wrapper):
    def request(self, request: ModelRequest) -> ModelRequest:
        if request.messages[-1].role is Role.TOOL:
            raise ModelError("400: messages must end with a user's turn", status=400)
        return request


class SendsEverythingToEveryone(Wrapper):
    def read(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        return request, ()


class LeavesOutInSilence(Wrapper):
    def read(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        return super().read(request)[0], ()


class TakesItsRelativesForItself(Wrapper):
    def wrote(self, message: Message) -> bool:
        return "host" in message.extras


class KeepsOneListener(Wrapper):
    def __init__(self, *answers: Turn, host: str = "here") -> None:
        super().__init__(*answers, host=host)
        self._listener: OnChunk | None = None

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self._listener = on_chunk

        async def relay(chunk: Chunk) -> None:
            assert self._listener is not None
            await self._listener(chunk)

        return await super().complete(request, None if on_chunk is None else relay)


BROKEN: dict[type[Wrapper], tuple[str, ...]] = {
    NameWithoutProvider: ("test_model_is_a_model_with_a_full_name",),
    EndsForNoReason: ("test_text_is_answered",),
    FailsOnNothing: ("test_empty_answer_is_an_answer",),
    WritesIntoTheTools: ("test_request_is_left_as_it_was",),
    RefusesStopTexts: ("test_settings_are_accepted",),
    AlwaysStops: ("test_answer_that_was_cut_off_says_so", "test_tool_call_and_its_result"),
    Normalises: ("test_unusual_text_goes_both_ways_unharmed",),
    CutsAnswers: ("test_long_answer_is_whole",),
    SaysItsCalls: ("test_tool_call_and_its_result", "test_failed_call_can_be_reported"),
    MakesOneCall: ("test_several_tool_calls_and_their_results",),
    ForgetsErrors: ("test_failed_call_can_be_reported",),
    StreamsAnotherText: ("test_streamed_answer_is_the_same_answer",),
    StreamsCallsAsText: ("test_streamed_tool_call_is_the_same_call",),
    ShowsPiecesAllAtOnce: ("test_pieces_wait_for_a_slow_listener",),
    SwallowsWhatListenersRaise: ("test_listener_that_fails_ends_the_call",),
    CountsNothing: ("test_usage_is_reported",),
    CountsNothingWhenStreaming: ("test_usage_is_reported_when_streaming",),
    FencesItsJson: ("test_output_follows_its_schema",),
    KeepsOnlyText: ("test_assistant_turn_goes_back_as_it_came",),
    SaysMoreThanItWasTold: ("test_assistant_turn_goes_back_as_it_came",),
    SendsEverythingToEveryone: (
        "test_what_another_model_wrote_for_itself_is_left_out_and_noted",
        "test_what_a_relative_wrote_for_itself_is_left_out_and_noted",
    ),
    LeavesOutInSilence: (
        "test_what_another_model_wrote_for_itself_is_left_out_and_noted",
        "test_what_a_relative_wrote_for_itself_is_left_out_and_noted",
    ),
    TakesItsRelativesForItself: ("test_what_a_relative_wrote_for_itself_is_left_out_and_noted",),
    NumbersItsRequests: ("test_every_request_begins_as_the_one_before",),
    WantsUniqueIds: ("test_ids_of_calls_may_repeat",),
    KnowsOnlyItsOwnBlocks: ("test_blocks_of_another_provider_do_no_harm",),
    EncodesCarelessly: ("test_text_that_is_not_unicode_is_answered_or_refused",),
    OverflowsWithoutAType: ("test_very_long_request_is_answered_or_refused",),
    SwallowsCancellation: ("test_cancelling_ends_the_call", "test_cancelling_a_stream_ends_it"),
    StreamsOnWhenCancelled: ("test_cancelling_a_stream_ends_it",),
    IgnoresDeadlines: ("test_deadline_ends_the_call", "test_deadline_in_the_past_fails_at_once"),
    FailsWithoutAType: ("test_failure_is_typed",),
    RefusesResults: ("test_agent_runs_on_it", "test_tool_call_and_its_result"),
    KeepsOneListener: ("test_calls_at_the_same_time_do_not_mix",),
}
CASES = [(kind, promise) for kind, promises in BROKEN.items() for promise in promises]
#: Not a promise of models: `test_contract_base.py` has it.
OF_THE_CONTRACT = "test_every_promise_is_kept_or_excused"


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "promise"), CASES)
async def test_promise_fails_for_a_model_that_breaks_it(kind: type[Wrapper], promise: str) -> None:
    broken = False
    try:
        await Made(kind).keep(promise)
    except BaseException as failure:  # noqa: BLE001  # pytest.fail raises a BaseException
        broken = not isinstance(failure, AttributeError | NameError | TypeError)
    assert broken


@pytest.mark.anyio
@pytest.mark.parametrize("promise", [promise for promise in PROMISES if promise != OF_THE_CONTRACT])
async def test_promise_holds_for_a_model_that_keeps_it(promise: str) -> None:
    await Made(Wrapper).keep(promise)


def test_every_promise_has_a_model_that_breaks_it() -> None:
    assert sorted({promise for _, promise in CASES}) == [p for p in PROMISES if p != OF_THE_CONTRACT]
