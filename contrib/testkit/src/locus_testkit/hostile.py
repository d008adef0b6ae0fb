"""The hostile server: everything that goes wrong between a provider and its server, one row each.

`HostileServerContract` walks a provider through the table: every row is one typed error with provider, status, request
id and whether it may be tried again; nothing hangs, nothing stays open, no key is shown, the thread can be continued.
"""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest
from attrs import field, frozen

from locus import Agent
from locus.core.errors import ModelError
from locus.journal import MemoryStore
from locus.models import Chunk, Model, ModelRequest
from locus_testkit.contracts._model import TEMPERATURE, build_request
from locus_testkit.contracts.base import Contract
from locus_testkit.contracts.features import needs
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest

__all__ = [
    "KEY",
    "TABLE",
    "Answer",
    "Case",
    "Good",
    "HostileFeatures",
    "HostileServerContract",
    "LocalServer",
    "ReceivedRequest",
]

#: The key that a provider is given in these tests. It has no provider's format, so only exact matching can hide it.
KEY = "hostile.7f3a9c0d1e2b"

_ID = {"x-request-id": "req-7f3a", "request-id": "req-7f3a", "opc-request-id": "req-7f3a"}


@frozen(kw_only=True)
class HostileFeatures:
    """What the protocol of a provider has.

    Args:
        ids: calls have ids.
        choices: an answer is a list of choices, which may be empty.
    """

    ids: bool = True
    choices: bool = True


@frozen(kw_only=True)
class Good:
    """What a server of the provider's protocol says when all is well.

    Args:
        whole: the answer "pong", as one piece.
        stream: the same as a stream, in several pieces.
        calls: two calls of the tool ``temperature``, for Paris and for Rome; with the same id, where the protocol has
            ids.
        calls_stream: the same as a stream.
        empty: an answer without any choice; None where the protocol cannot say that.
        empty_stream: the same as a stream.
    """

    whole: Answer
    stream: Answer
    calls: Answer
    calls_stream: Answer
    empty: Answer | None = None
    empty_stream: Answer | None = None


@frozen(kw_only=True)
class Case:
    """One row.

    Args:
        name: what goes wrong.
        answer: what the server says, made of the good answer (whole, or as a stream).
        status: what the error says; None = not looked at.
        retryable: what the error says; None = the protocol decides.
        retry_after: what the error says, seconds.
        identified: whether the error has the id of the request.
        streams: whether the row is for streams, for whole answers, or, None, for both.
        late: whether only the deadline ends it.
        kind: the name of the error's class; ``""`` = not looked at.
    """

    name: str
    answer: Callable[[Answer], Answer] = field(repr=False)
    status: int | None = None
    retryable: bool | None = None
    retry_after: float | None = None
    identified: bool = False
    streams: bool | None = None
    late: bool = False
    kind: str = ""


def _status(status: int, *, retryable: bool, **headers: str) -> Case:
    body = {"error": {"message": f"no: the key {KEY} is not liked", "type": "some_error", "code": None}}
    after = headers.get("retry_after")
    given = {**_ID, **({"retry-after": after} if after else {})}
    return Case(
        name=f"status {status}",
        answer=lambda _: Answer.of(body, status=status, headers=given),
        status=status,
        retryable=retryable,
        retry_after=float(after) if after else None,
        identified=True,
    )


def _text(answer: Answer) -> bytes:
    return b"".join(answer.body)


def _first_half(answer: Answer) -> tuple[bytes, ...]:
    """The first half of the pieces, or of the one piece."""
    pieces = answer.body
    if len(pieces) > 1:
        return pieces[: len(pieces) // 2]
    return (pieces[0][: len(pieces[0]) // 2],)


def _half_a_piece(answer: Answer) -> tuple[bytes, ...]:
    *before, last = _first_half(answer)
    return (*before, last[: max(1, len(last) * 2 // 3)].rstrip() + b"\n\n")


_PAGE = b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>" + b"<p>no</p>" * 5000 + b"</body></html>"

#: What a gateway makes of the error of the provider behind it.
_NO_QUOTA = {
    "error": {
        "message": "litellm.RateLimitError: OpenAIException - You exceeded your current quota, please check your plan "
        "and billing details.",
        "type": None,
        "code": "429",
    }
}

#: Every row.
TABLE: tuple[Case, ...] = (
    *(_status(status, retryable=False) for status in (400, 401, 402, 403, 404, 405, 413, 422, 501)),
    *(_status(status, retryable=True) for status in (408, 409, 425, 500, 502, 503, 504, 529)),
    _status(429, retryable=True, retry_after="7"),
    Case(
        name="error page in HTML",
        answer=lambda _: Answer(status=502, media_type="text/html", body=_PAGE, headers=_ID),
        status=502,
        retryable=True,
        identified=True,
    ),
    Case(
        name="error that repeats the key in its headers",
        answer=lambda _: Answer.of({"error": {"message": "no"}}, status=400, headers=dict.fromkeys(_ID, f"no {KEY}")),
        status=400,
        retryable=False,
    ),
    Case(name="error without a body", answer=lambda _: Answer(status=503, media_type=None), status=503, retryable=True),
    Case(
        name="error whose body never ends",
        answer=lambda _: Answer(status=500, body=b"x" * 65536, repeat=4096, chunked=True),
        status=500,
        retryable=True,
    ),
    Case(
        name="page in HTML with the status of an answer",
        answer=lambda _: Answer(media_type="text/html", body=_PAGE, headers=_ID),
        retryable=False,
        identified=True,
    ),
    Case(
        name="quota in the words of a gateway",
        answer=lambda _: Answer.of(_NO_QUOTA, status=429, headers=_ID),
        status=429,
        retryable=False,
        identified=True,
        kind="QuotaExceeded",
    ),
    Case(
        name="quota with the status of an answer",
        answer=lambda _: Answer.of(_NO_QUOTA, headers=_ID),
        retryable=False,
        identified=True,
        kind="QuotaExceeded",
    ),
    Case(
        name="quota in the middle of a stream",
        answer=lambda good: _reshape(good, json.dumps(_NO_QUOTA).encode()),
        streams=True,
        retryable=False,
        kind="QuotaExceeded",
    ),
    Case(name="plain text for an answer", answer=lambda _: Answer(media_type="text/plain", body=b"hello")),
    Case(name="no body for an answer", answer=lambda _: Answer(status=204, media_type=None)),
    Case(
        name="JSON of another shape", answer=lambda good: _reshape(good, b'{"choices": 5, "output": 7, "content": 3}')
    ),
    Case(name="JSON that is a list", answer=lambda good: _reshape(good, b"[]")),
    Case(name="JSON that is null", answer=lambda good: _reshape(good, b"null")),
    Case(
        name="truncated JSON",
        answer=lambda good: good.with_fields(body=_text(good)[:-9], headers=_ID),
        streams=False,
        retryable=True,
        identified=True,
    ),
    Case(
        name="truncated JSON in a stream",
        answer=lambda good: good.with_fields(body=_half_a_piece(good), headers=_ID),
        streams=True,
        retryable=True,
        identified=True,
    ),
    Case(
        name="stream that ends early",
        answer=lambda good: good.with_fields(body=_first_half(good), headers=_ID),
        streams=True,
        retryable=True,
        identified=True,
    ),
    Case(name="stream of nothing", answer=lambda good: good.with_fields(body=()), streams=True, retryable=True),
    Case(
        name="connection closed in the middle",
        answer=lambda good: good.with_fields(body=_first_half(good), ending="cut"),
        retryable=True,
    ),
    Case(
        name="connection reset in the middle",
        answer=lambda good: good.with_fields(body=_first_half(good), ending="reset"),
        retryable=True,
    ),
    Case(name="connection closed at once", answer=lambda _: Answer(status=0, ending="cut"), retryable=True),
    Case(name="connection reset at once", answer=lambda _: Answer(status=0, ending="reset"), retryable=True),
    Case(name="no HTTP", answer=lambda _: Answer(status=0, body=b"220 mail.example ESMTP\r\n", ending="cut")),
    Case(name="no answer at all", answer=lambda _: Answer(status=0, ending="silent"), late=True),
    Case(
        name="silence in the middle",
        answer=lambda good: good.with_fields(body=_first_half(good), ending="silent"),
        late=True,
    ),
    Case(
        name="slow drip",
        answer=lambda good: good.with_fields(body=(b" ",), repeat=3000, pause=0.01, chunked=True),
        late=True,
    ),
)


def _reshape(good: Answer, body: bytes) -> Answer:
    """The answer with another body, in the framing of its kind."""
    if good.media_type == "text/event-stream":
        return good.with_fields(body=(b"data: " + body + b"\n\n",))
    return good.with_fields(body=(body + b"\n",))


_ROWS = [
    pytest.param(case, listening, id=f"{case.name.replace(' ', '-')}-{'stream' if listening else 'whole'}")
    for case in TABLE
    for listening in (False, True)
    if case.streams in (None, listening)
]

_EITHER = pytest.mark.parametrize("listening", [False, True], ids=["whole", "stream"])


@pytest.mark.anyio
class HostileServerContract(Contract):
    """The promises of a provider over HTTP when its server misbehaves. Subclass it and say how yours is made."""

    features: ClassVar[HostileFeatures] = HostileFeatures()

    #: What the server says when all is well.
    good: ClassVar[Good]

    #: Seconds after which a call has hung.
    patience: ClassVar[float] = 10.0

    #: Seconds that a row gets which only the deadline ends; more where the machine is too busy for that.
    deadline: ClassVar[float] = 0.1

    def make_model(self, base_url: str, key: str) -> Model:
        """The model under test.

        Args:
            base_url: the address of the server, such as ``"http://127.0.0.1:4711"``.
            key: what it is to send.
        """
        raise NotImplementedError(f"{type(self).__name__} needs make_model(self, base_url, key), which gives a Model")

    @pytest.fixture
    def server(self) -> Iterator[LocalServer]:
        """The server."""
        with LocalServer() as server:
            yield server

    @pytest.mark.parametrize(("case", "listening"), _ROWS)
    async def test_every_failure_is_one_typed_error(self, server: LocalServer, case: Case, *, listening: bool) -> None:
        """... that says what it is; no hang, no open connection, no key; the next call works."""
        model = self.make_model(server.url, KEY)
        server.then(case.answer(self._good(listening=listening)))
        for longer in (1, 4, 16):
            with anyio.fail_after(self.patience), pytest.raises(ModelError) as caught:
                await _ask(model, self._request(case, self.deadline * longer), listening=listening)
            self._check(caught.value, case, model)
            # On a busy machine the deadline may come before the call reaches the server: that is another failure.
            if server.wait_for(lambda: bool(server.received), patience=1.0):
                break
        assert server.wait_until_idle(), f"{server.open} connections were left open"
        server.then(self._good(listening=listening))
        with anyio.fail_after(self.patience):
            assert (await _ask(model, build_request("Say pong."), listening=listening)) == "pong"
        assert server.wait_until_idle(), f"{server.open} connections were left open"
        assert len(server.received) == 2

    def _request(self, case: Case, deadline: float) -> ModelRequest:
        until = anyio.current_time() + deadline if case.late else None
        return build_request("Say pong.", tools=(TEMPERATURE,), deadline=until)

    def _good(self, *, listening: bool) -> Answer:
        return self.good.stream if listening else self.good.whole

    def _check(self, error: ModelError, case: Case, model: Model) -> None:
        assert type(error) is not ModelError, "a failure of this kind has a type of its own"
        assert error.provider == model.name.partition(":")[0]
        assert type(error.retryable) is bool
        if case.status is not None:
            assert error.status == case.status
        if case.retryable is not None:
            assert error.retryable is case.retryable
        assert case.kind in ("", type(error).__name__)
        assert error.retry_after == case.retry_after
        if case.identified:
            assert error.request_id == "req-7f3a"
        text = "".join(traceback.format_exception(error))
        assert KEY not in text
        assert KEY not in repr(vars(error))
        assert 10 < len(str(error)) < 1500
        assert "<p>" not in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301  # our own bytes

    @_EITHER
    @pytest.mark.parametrize("media_type", ["text/plain", "application/octet-stream", None])
    async def test_answer_is_read_by_its_content(
        self, server: LocalServer, media_type: str | None, *, listening: bool
    ) -> None:
        """... whatever a server calls it."""
        server.then(self._good(listening=listening).with_fields(media_type=media_type))
        with anyio.fail_after(self.patience):
            said = await _ask(self.make_model(server.url, KEY), build_request("Say pong."), listening=listening)
        assert said == "pong"
        assert server.wait_until_idle(), "the connection stayed open"

    @_EITHER
    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    async def test_redirect_is_not_followed(self, server: LocalServer, status: int, *, listening: bool) -> None:
        """Another host, or the same one at another port, is never shown a key."""
        with LocalServer() as elsewhere:
            model = self.make_model(server.url, KEY)
            server.then(Answer(status=status, headers={"location": f"{elsewhere.url}/v1/steal?x=1", **_ID}))
            with anyio.fail_after(self.patience), pytest.raises(ModelError) as caught:
                await _ask(model, build_request("Say pong."), listening=listening)
            assert elsewhere.connections == 0
        assert (caught.value.status, caught.value.retryable) == (status, False)
        assert caught.value.request_id == "req-7f3a"
        assert elsewhere.url in str(caught.value)
        assert server.wait_until_idle()

    async def test_missing_server_is_a_typed_error(self) -> None:
        """A server that is not running may be running later."""
        with LocalServer() as server:
            url = server.url
        model = self.make_model(url, KEY)
        with anyio.fail_after(self.patience), pytest.raises(ModelError) as caught:
            await model.complete(build_request("Say pong."))
        assert type(caught.value) is not ModelError
        assert caught.value.retryable

    @needs("ids")
    @_EITHER
    async def test_equal_ids_of_calls_are_distinguished(self, server: LocalServer, *, listening: bool) -> None:
        """Two calls with one id are two calls, with two ids."""
        model = self.make_model(server.url, KEY)
        server.then(self.good.calls_stream if listening else self.good.calls)
        response = await model.complete(
            build_request("How warm?", tools=(TEMPERATURE,)), _ignore_chunk if listening else None
        )
        assert [call.arguments.get("city") for call in response.tool_calls] == ["Paris", "Rome"]
        assert len({call.id for call in response.tool_calls}) == 2

    @needs("choices")
    @_EITHER
    async def test_answer_without_choices_is_a_typed_error(self, server: LocalServer, *, listening: bool) -> None:
        """... and not an empty answer that would end the run."""
        answer = self.good.empty_stream if listening else self.good.empty
        assert answer is not None, "where answers have choices, say how an answer without one looks"
        model = self.make_model(server.url, KEY)
        server.then(answer)
        with pytest.raises(ModelError) as caught:
            await _ask(model, build_request("Say pong."), listening=listening)
        assert type(caught.value) is not ModelError
        assert caught.value.retryable
        assert server.wait_until_idle()

    async def test_cancelling_closes_the_connection(self, server: LocalServer) -> None:
        """The server does not generate for a client that is gone."""
        model = self.make_model(server.url, KEY)
        server.then(self.good.stream.with_fields(ending="silent"))
        with anyio.CancelScope() as scope:

            async def cancel(chunk: Chunk) -> None:
                scope.cancel()
                await anyio.lowlevel.checkpoint()

            await model.complete(build_request("Say pong."), cancel)
        assert scope.cancelled_caught
        assert server.wait_until_idle(), "the connection stayed open"

    async def test_listener_that_fails_closes_the_connection(self, server: LocalServer) -> None:
        """What a listener raises comes out as it is."""
        model = self.make_model(server.url, KEY)
        server.then(self.good.stream.with_fields(ending="silent"))

        async def fail(chunk: Chunk) -> None:
            raise LookupError("enough")

        with anyio.fail_after(self.patience), pytest.raises(LookupError, match="enough"):
            await model.complete(build_request("Say pong."), fail)
        assert server.wait_until_idle(), "the connection stayed open"

    async def test_thread_continues_after_a_failure(self, server: LocalServer) -> None:
        """A run that a failure ended can be followed by the next turn of its thread."""
        store = MemoryStore()
        agent: Agent[Any, Any] = Agent(self.make_model(server.url, KEY), checkpointer=store, system_prompt="Be brief.")
        server.then(self.good.whole.with_fields(body=_first_half(self.good.whole), ending="reset"), self.good.whole)
        failed = await agent.run("Say pong.", thread_id="t")
        assert failed.stop_reason == "ModelError"
        assert isinstance(failed.error, ModelError)
        assert KEY not in repr(failed)
        assert server.wait_until_idle(), "a failed run left its connection open"
        again = await agent.run("Say pong.", thread_id="t")
        assert (again.stop_reason, again.text) == ("NoToolCalls", "pong")
        assert server.wait_until_idle(), "a finished run left a connection open"
        assert KEY not in repr(await store.read("t"))

    async def test_run_keeps_one_connection(self, server: LocalServer) -> None:
        """The calls of a run share it, and it is closed with the run."""
        server.then(self.good.calls, self.good.whole)

        def temperature(city: str) -> str:
            """Give the temperature of a city."""
            return "21"

        agent: Agent[Any, Any] = Agent(self.make_model(server.url, KEY), tools=[temperature])
        result = await agent.run("How warm?")
        result.raise_for_failure()
        assert server.connections == 1
        assert server.wait_until_idle(), "a finished run left its connection open"


async def _ask(model: Model, request: ModelRequest, *, listening: bool) -> str:
    return (await model.complete(request, _ignore_chunk if listening else None)).message.text


async def _ignore_chunk(chunk: Chunk) -> None:
    """Listens to a stream without a use for it."""
