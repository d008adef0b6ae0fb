"""A status and a body are one error, and its text neither shows a key nor quotes a page."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import ContextOverflow, ModelError
from locus.plugins.secret import Secret
from locus_wire import Client, Endpoint, Outgoing, errors
from locus_wire.failures import LONGEST, ErrorDetails, read_error, request_id, retry_after, status_error, stream_error
from locus_wire.keys import Key, hide_secrets

#: Bodies as the vendors document them, and what is to be read from each.
BODIES = [
    (
        {"error": {"message": "Rate limit reached", "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
        ErrorDetails("Rate limit reached", "rate_limit_exceeded", "requests"),
    ),
    (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"},
        ErrorDetails("Overloaded", None, "overloaded_error"),
    ),
    ({"error": "model 'x' not found"}, ErrorDetails("model 'x' not found")),
    ({"code": "NotAuthenticated", "message": "no"}, ErrorDetails("no", "NotAuthenticated")),
    (
        {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
        ErrorDetails("bad", "400", "BadRequestError"),
    ),
    (
        {"detail": [{"loc": ["body"], "msg": "field required"}]},
        ErrorDetails('[{"loc": ["body"], "msg": "field required"}]'),
    ),
    ([{"error": {"code": 404, "message": "gone", "status": "NOT_FOUND"}}], ErrorDetails("gone", "404")),
    (
        {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}},
        ErrorDetails("too long", "400", "exceed_context_size_error"),
    ),
    (None, ErrorDetails()),
    ("text", ErrorDetails("text")),
]


@pytest.mark.parametrize(("body", "wanted"), BODIES)
def test_bodies_of_all_vendors_are_read(body: Any, wanted: ErrorDetails) -> None:
    assert read_error(json.dumps(body).encode()) == wanted


@given(st.binary(max_size=60), st.integers(300, 599))
def test_any_body_and_any_status_is_one_error(body: bytes, status: int) -> None:
    error = status_error("acme", status, read_error(body))
    assert isinstance(error, ModelError)
    assert type(error) is not ModelError
    assert (error.provider, error.status) == ("acme", status)
    assert len(str(error)) < LONGEST + 400


@pytest.mark.parametrize(
    ("status", "code", "kind", "retryable"),
    [
        (400, None, errors.RequestRefused, False),
        (401, None, errors.KeyRefused, False),
        (402, None, errors.QuotaExceeded, False),
        (403, None, errors.NotAllowed, False),
        (404, None, errors.NotFound, False),
        (408, None, errors.RequestRefused, True),
        (429, "rate_limit_exceeded", errors.RateLimited, True),
        (429, "insufficient_quota", errors.QuotaExceeded, False),
        (500, None, errors.ProviderFailed, True),
        (501, None, errors.ProviderFailed, False),
        (503, None, errors.Overloaded, True),
        (529, None, errors.Overloaded, True),
        (307, None, errors.Redirected, False),
        (400, "context_length_exceeded", errors.ContextTooLong, False),
        (400, "exceed_context_size_error", errors.ContextTooLong, False),
    ],
)
def test_table(status: int, code: str | None, kind: type[ModelError], retryable: bool) -> None:
    error = status_error("acme", status, ErrorDetails("no", code))
    assert type(error) is kind
    assert error.retryable is retryable
    assert getattr(error, "code", None) == code


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_a_request_that_is_too_long_is_known_by_its_words(message: str) -> None:
    assert isinstance(status_error("acme", 400, ErrorDetails(message)), ContextOverflow)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (
            429,
            "429",
            "litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, please "
            "check your plan and billing details.",
        ),
        (500, None, "upstream: Error code: 429 - {'error': {'type': 'insufficient_quota', 'param': None}}"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        (403, None, "Insufficient credits to make this request"),
        (400, "budget_exceeded", "ExceededBudget: Budget has been exceeded! Current cost: 1.2, Max budget: 1.0"),
    ],
)
def test_a_quota_in_the_words_of_a_gateway_is_not_tried_again(status: int, code: str | None, message: str) -> None:
    error = status_error("acme", status, ErrorDetails(message, code))
    assert type(error) is errors.QuotaExceeded
    assert not error.retryable
    # A gateway means the status that it made up, not what the provider said.
    hinted = status_error("acme", status, ErrorDetails(message, code), headers={"x-should-retry": "true"})
    assert not hinted.retryable


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        ("You exceeded your current quota: 15 requests per minute. Please retry in 36.2s.", {}),
        ("You exceeded your current quota.", {"retry-after": "20"}),
        ("Rate limit reached for requests", {}),
    ],
)
def test_a_quota_that_is_refilled_is_a_rate_limit(message: str, headers: dict[str, str]) -> None:
    error = status_error("acme", 429, ErrorDetails(message), headers=headers)
    assert type(error) is errors.RateLimited
    assert error.retryable


def test_the_provider_decides_whether_to_try_again_where_it_says_so() -> None:
    assert not status_error("acme", 500, ErrorDetails("no"), headers={"x-should-retry": "false"}).retryable
    assert status_error("acme", 400, ErrorDetails("no"), headers={"x-should-retry": "true"}).retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_how_long_to_wait_may_be_a_date() -> None:
    found = retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)})
    assert found is not None
    assert 50 < found <= 60


def test_the_id_of_a_request_has_many_names() -> None:
    for name in ("x-request-id", "request-id", "apim-request-id", "opc-request-id"):
        assert request_id({name: "r1"}) == "r1"
    assert request_id({}) is None


def test_an_error_in_a_stream_has_the_status_that_it_would_have_had() -> None:
    overloaded = stream_error("acme", {"type": "error", "error": {"type": "overloaded_error", "message": "no"}})
    assert (type(overloaded), overloaded.status, overloaded.retryable) == (errors.Overloaded, 529, True)
    assert (
        type(stream_error("acme", {"error": {"message": "x", "code": "context_length_exceeded"}}))
        is errors.ContextTooLong
    )
    assert stream_error("acme", {"error": {"message": "x", "code": 503}}).status == 503
    unknown = stream_error("acme", {"error": "something"})
    assert (unknown.status, unknown.retryable) == (500, True)


@pytest.mark.parametrize("piece", ["<title>", "<title", "</title", "<title><", "<", ">"])
def test_a_page_of_nothing_but_titles_is_read_once(piece: str) -> None:
    usual = _seconds(("<p>The quick brown fox. " * 4_000)[:64_000])
    assert _seconds((piece * 64_000)[:64_000]) < 100 * max(usual, 0.001)


def _seconds(page: str) -> float:
    """CPU time of this thread, the least of three: what disturbs only adds to it."""
    taken = []
    for _ in range(3):
        begun = time.thread_time()
        read_error(page, "text/html")
        taken.append(time.thread_time() - begun)
    return min(taken)


def test_a_page_is_named_by_its_title() -> None:
    text = str(status_error("acme", 502, read_error(b"<html><title>Bad\ngateway</title><p>lots</p>", "text/html")))
    assert "a web page, Bad gateway" in text
    assert "lots" not in text


def test_what_was_sent_is_not_quoted() -> None:
    text = "Incorrect API key provided: k7f3aSECRET. Yours: sk-proj-abc*****xyz, Bearer abc.def, key_123456789"
    error = status_error(
        "acme", 401, ErrorDetails(text, "bad k7f3aSECRET"), secrets=("Bearer k7f3aSECRET", "k7f3aSECRET")
    )
    for part in ("SECRET", "xyz", "abc.def", "123456789"):
        assert part not in str(error)
        assert part not in repr(vars(error))


def test_a_word_that_only_looks_like_a_key_of_a_few_letters_stays() -> None:
    assert hide_secrets("the sk-1 task-force asks", ("the",)) == "the sk-1 task-force asks"


# -- keys -----------------------------------------------------------------------------------------


def test_a_key_is_given_or_in_the_environment() -> None:
    key = Key(provider="acme", env=("ACME_KEY", "OTHER_KEY"))
    assert key.find({"OTHER_KEY": " b ", "ACME_KEY": ""}) == "b"
    given = Key(provider="acme", given=Secret("a"), env=("ACME_KEY",))
    assert given.find({"ACME_KEY": "b"}) == "a"
    assert "'a'" not in repr(given)


def test_a_missing_key_says_where_it_is_looked_for() -> None:
    with pytest.raises(errors.KeyMissing, match=r"set ACME_KEY, or write api_key = .* in \[plugins\.acme\]") as caught:
        Key(provider="acme", env=("ACME_KEY",)).find({})
    assert not caught.value.retryable
    assert Key(provider="acme", env=("ACME_KEY",), needed=False).find({}) is None


def test_a_missing_key_is_found_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(Endpoint.with_key(Key(provider="acme", env=("ACME_KEY",)), "https://acme.example/v1"))
    with pytest.raises(errors.KeyMissing, match="set ACME_KEY"):
        client.check_key()
    monkeypatch.setenv("ACME_KEY", "k")
    client.check_key()


def test_a_signer_that_has_to_ask_is_not_asked_for_a_key() -> None:
    async def sign(_: Outgoing) -> dict[str, str]:
        raise AssertionError

    Client(Endpoint(provider="acme", base_url="https://acme.example/v1", sign=sign)).check_key()


def test_a_wrong_key_says_where_it_came_from() -> None:
    assert "MINE" in Key(provider="acme", given=Secret("a", "MINE")).remedy
