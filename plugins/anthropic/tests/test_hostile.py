"""The table of all that goes wrong between here and a server, and what this vendor says of its failures."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from locus.core.errors import ContextOverflow, ModelError
from locus.core.messages import Message, Role, Usage
from locus.models.protocol import Chunk, Model, ModelRequest
from locus.plugins.secret import Secret
from locus_plugin_anthropic import listing
from locus_plugin_anthropic.model import AnthropicModel
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_testkit.hostile import KEY, Answer, Good, HostileFeatures, HostileServerContract, LocalServer
from locus_wire import errors

from .kit import events_of, message_of, stream_of


def _model(url: str, **more: Any) -> AnthropicModel:
    # Short answers come in one piece unless somebody listens.
    own = {"api_key": Secret(KEY), "base_url": url, "max_tokens": 4096, **more}
    return AnthropicModel("claude-sonnet-5-5", AnthropicSettings(**own))


def _request(**more: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(Role.USER, "Say pong."),), **more)


PONG = message_of({"type": "text", "text": "pong"})
CALLS = message_of(
    *({"type": "tool_use", "id": "toolu_1", "name": "temperature", "input": {"city": c}} for c in ("Paris", "Rome"))
)


class TestHostileServer(HostileServerContract):
    features = HostileFeatures(choices=False)
    good = Good(
        whole=Answer.of(PONG),
        stream=stream_of(events_of(PONG, 2)),
        calls=Answer.of(CALLS),
        calls_stream=stream_of(events_of(CALLS)),
    )

    def make_model(self, base_url: str, key: str) -> Model:
        return _model(base_url, api_key=Secret(key))


def _vendor(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CUB2X"}


#: What the vendor's page of errors lists, with the words it uses.
VENDOR = [
    (400, "invalid_request_error", "max_tokens: Field required", errors.RequestRefused, False),
    (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", errors.ContextTooLong, False),
    (401, "authentication_error", "invalid x-api-key", errors.KeyRefused, False),
    (402, "billing_error", "Your credit balance is too low", errors.QuotaExceeded, False),
    (403, "permission_error", "Your API key does not have permission", errors.NotAllowed, False),
    (413, "request_too_large", "Request exceeds the maximum size", errors.RequestRefused, False),
    (429, "rate_limit_error", "This request would exceed your rate limit", errors.RateLimited, True),
    (500, "api_error", "Internal server error", errors.ProviderFailed, True),
    (504, "timeout_error", "Request timed out", errors.ProviderFailed, True),
    (529, "overloaded_error", "Overloaded", errors.Overloaded, True),
]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "kind", "words", "expected", "passes"), VENDOR, ids=[f"{v[0]} {v[2][:9]}" for v in VENDOR]
)
async def test_what_the_vendor_says_is_understood(
    status: int, kind: str, words: str, expected: type[ModelError], *, passes: bool
) -> None:
    with LocalServer() as server:
        headers = {"request-id": "req_011CUB2X", "retry-after": "12"}
        server.then(Answer.of(_vendor(kind, words), status=status, headers=headers))
        with pytest.raises(ModelError) as caught:
            await _model(server.url).complete(_request())
    assert type(caught.value) is expected
    error: Any = caught.value
    assert (error.provider, error.status, error.code) == ("anthropic", status, kind)
    assert (error.retryable, error.request_id) == (passes, "req_011CUB2X")
    assert words in str(error)
    assert isinstance(error, ContextOverflow) or error.retry_after == 12.0


@pytest.mark.anyio
async def test_wrong_key_says_where_it_is_read() -> None:
    with LocalServer() as server:
        server.then(Answer.of(_vendor("authentication_error", f"invalid x-api-key {KEY}"), status=401))
        with pytest.raises(errors.KeyRefused, match=r"write api_key = .* in \[plugins\.anthropic\]") as caught:
            await _model(server.url).complete(_request())
    assert KEY not in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "expected"), [(v[1], v[3]) for v in VENDOR if v[3] is not errors.ContextTooLong])
async def test_failure_in_the_middle_of_a_stream_is_the_same_error(kind: str, expected: type[ModelError]) -> None:
    begun = list(events_of(message_of({"type": "text", "text": "pong"}), 2))[:4]
    with LocalServer() as server:
        server.then(stream_of([*begun, _vendor(kind, "in the middle")]).with_fields(headers={"request-id": "req_1"}))
        with pytest.raises(ModelError, match="in the middle") as caught:
            await _model(server.url).complete(_request(), _deaf)
        assert server.wait_until_idle()
    assert type(caught.value) is expected
    assert caught.value.request_id == "req_1"
    assert caught.value.usage == Usage(prompt_tokens=10, completion_tokens=1)


async def _deaf(chunk: Chunk) -> None:
    """Listens without a use for it."""


@pytest.mark.anyio
async def test_unknown_model_is_compared_with_the_list() -> None:
    with LocalServer() as server:
        missing = Answer.of(_vendor("not_found_error", "model: claude-sonet-5-5"), status=404)
        server.then(missing, Answer.of({"data": [{"id": "claude-sonnet-5-5"}]}))
        model = AnthropicModel("claude-sonet-5-5", AnthropicSettings(api_key=Secret(KEY), base_url=server.url))
        with pytest.raises(errors.NotFound, match="did you mean anthropic:claude-sonnet-5-5"):
            await model.complete(_request())
        assert [each.path for each in server.received] == ["/v1/messages", "/v1/models?limit=1000"]
        assert server.wait_until_idle()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"api_key": Secret("k-1")}, {"x-api-key": "k-1"}),
        ({"api_key": None, "auth_token": Secret("t-1")}, {"authorization": "Bearer t-1"}),
        ({"api_key": Secret("k-1"), "auth_token": Secret("t-1")}, {"x-api-key": "k-1"}),
        ({"api_key": None}, {}),
    ],
    ids=["key", "token", "both", "environment"],
)
async def test_who_asks(own: dict[str, Any], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-env")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "t-env")
    with LocalServer() as server:
        server.then(Answer.of(PONG))
        await _model(server.url, betas=("a-1", "b-2"), **own).complete(_request())
        (received,) = server.received
    proof = {name: value for name, value in received.headers.items() if name in ("x-api-key", "authorization")}
    assert proof == expected
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert received.headers["anthropic-beta"] == "a-1,b-2"
    assert received.path == "/v1/messages"


@pytest.mark.anyio
@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_address_may_end_with_the_version(ending: str) -> None:
    with LocalServer() as server:
        server.then(Answer.of(PONG))
        await _model(f"{server.url}/team{ending}").complete(_request())
        assert server.received[0].path == "/team/v1/messages"


@pytest.mark.anyio
async def test_without_a_key_nothing_is_sent_to_the_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with anyio.fail_after(5), pytest.raises(errors.KeyMissing, match="ANTHROPIC_API_KEY"):
        await AnthropicModel("m", AnthropicSettings()).complete(_request())
    # A server of one's own may do without.
    with LocalServer() as server:
        server.then(Answer.of(PONG))
        await _model(server.url, api_key=None).complete(_request())
        assert not {"x-api-key", "authorization"} & server.received[0].headers.keys()


def test_list_is_what_the_server_has() -> None:
    rows = [
        {"id": "claude-x", "display_name": "Claude X", "max_input_tokens": 200000, "max_tokens": 64000},
        {"id": "claude-w", "display_name": "Claude W", "lifecycle": "deprecated"},
        {"id": "local"},
    ]
    with LocalServer() as server:
        server.then(Answer.of({"data": rows}), Answer.of({"models": []}))
        own = AnthropicSettings(api_key=Secret(KEY), base_url=server.url)
        assert listing.models(own) == [
            ("anthropic:claude-x", "Claude X, 200,000 tokens of context, 64,000 of an answer"),
            ("anthropic:claude-w", "Claude W, deprecated"),
            ("anthropic:local", ""),
        ]
        with pytest.raises(errors.BadAnswer):
            listing.models(own)
