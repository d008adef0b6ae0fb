"""The table: from a status, a body or a failure of the transport to exactly one typed error.

Sources: the error pages of OpenAI, Azure, Anthropic, Ollama, OCI and llama.cpp; a body is read for its message and its
code, whatever its shape, and never trusted with more.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from locus.core.errors import ModelError
from locus_wire.errors import (
    BadAnswer,
    ContextTooLong,
    KeyRefused,
    NotAllowed,
    NotFound,
    Overloaded,
    ProviderFailed,
    QuotaExceeded,
    RateLimited,
    Redirected,
    RequestRefused,
    WireError,
)
from locus_wire.keys import hide_secrets

__all__ = [
    "ErrorDetails",
    "bad_answer",
    "drop_secrets",
    "read_error",
    "request_id",
    "retry_after",
    "shorten",
    "status_error",
    "stream_error",
]

#: Characters of a provider's text that a message quotes.
LONGEST = 400

_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "opc-request-id", "x-amzn-requestid", "cf-ray")

_TOO_LONG_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
)
_TOO_LONG = re.compile(
    r"maximum context length|context[ _](?:window|length|size)|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|reduce the length of",
    re.IGNORECASE,
)
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error", "billing_not_active"})

#: The same in words: a gateway quotes the error of the provider behind it, and gives it a code of its own.
_QUOTA = re.compile(
    r"insufficient[ _](?:quota|funds|credits?|balance)|billing[ _](?:hard[ _]limit|not[ _]active)"
    r"|credit balance is too low|budget has been exceeded",
    re.IGNORECASE,
)
#: Words for a quota of any kind; one of so much a minute is refilled, and says when.
_ANY_QUOTA = re.compile(r"exceeded your current quota", re.IGNORECASE)
_REFILLED = re.compile(r"(?:retry|try again) (?:in|after) \d", re.IGNORECASE)

#: What an error in the middle of a stream, which has no status of its own, would have had.
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "overloaded": 529,
    "service_unavailable": 503,
}

_WORDS: dict[int, tuple[type[WireError], str]] = {
    401: (KeyRefused, "the key was refused; {remedy}"),
    402: (QuotaExceeded, "the account has no credit left; see its billing page"),
    403: (NotAllowed, "this key may not do that; see what it and its project are allowed"),
    404: (
        NotFound,
        "the model or the address does not exist; compare the model's name and base_url with what `locus models` lists",
    ),
    413: (RequestRefused, "the request is too large; send less, or let a conversation manager shorten the history"),
    429: (RateLimited, "too many requests or tokens at a time; wait, or ask less at a time"),
    501: (ProviderFailed, "the server does not know how to do that; compare base_url with its documentation"),
    503: (Overloaded, "the provider is overloaded; try again later"),
    529: (Overloaded, "the provider is overloaded; try again later"),
}


@frozen
class ErrorDetails:
    """What the body of an error says."""

    message: str = ""
    code: str | None = None
    kind: str | None = None

    @property
    def words(self) -> frozenset[str]:
        """Its code and its kind."""
        return frozenset(word for word in (self.code, self.kind) if word)


def read_error(body: bytes | str | Mapping[str, Any], media_type: str = "") -> ErrorDetails:
    """The message and the code in the body of an error, whatever its shape.

    Args:
        body: as it came; only its beginning need be there.
        media_type: of the body, where known.
    """
    data: Any = body
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            return ErrorDetails(_page(body) if "html" in media_type or body.lstrip()[:1] == "<" else body.strip())
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return ErrorDetails("" if data is None else str(data))
    inner = data.get("error")
    if isinstance(inner, str):
        return ErrorDetails(inner, _text(data.get("code")), _text(data.get("type")))
    found: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    message = found.get("message") or found.get("detail") or found.get("error_description") or ""
    if not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False, default=str)
    return ErrorDetails(message.strip(), _text(found.get("code")), _text(found.get("type")))


def status_error(
    provider: str,
    status: int,
    what: ErrorDetails,
    *,
    headers: Mapping[str, str] | None = None,
    remedy: str = "",
    secrets: tuple[str, ...] = (),
) -> ModelError:
    """The error that a status and a body are.

    Args:
        provider: the scheme of the provider.
        status: 300 or more.
        what: the body.
        headers: of the response, by lower-case names.
        remedy: what to do about a wrong key.
        secrets: what was sent and must not be quoted.
    """
    given = headers or {}
    found = request_id(given, secrets)
    quoted = shorten(hide_secrets(what.message, secrets))
    code = hide_secrets(what.code or what.kind or "", secrets)[:80] or None
    wait = retry_after(given)

    def text(words: str) -> str:
        tail = f': "{quoted}"' if quoted else ""
        number = f", request {found}" if found else ""
        return f"{provider} answered {status}{f' ({code})' if code else ''}{number}: {words}{tail}"

    if 300 <= status < 400:
        target = hide_secrets(_host(given.get("location", "")), secrets)
        return Redirected(
            text(
                f"it redirects to {target}, which is not followed, because it would receive the key; set base_url to it"
            ),
            provider=provider,
            status=status,
            request_id=found,
            code=code,
            retryable=False,
        )
    if status in (400, 413, 422, 500) and (what.words & _TOO_LONG_CODES or _TOO_LONG.search(what.message)):
        words = "the request is longer than the model's window; let a conversation manager shorten the history"
        return ContextTooLong(text(words), provider=provider, status=status, request_id=found, code=code)
    kind, words = _WORDS.get(status) or _any(status)
    retryable: bool | None = None
    if _is_quota(status, what, wait):
        kind, words, retryable = QuotaExceeded, "the account has no credit left; see its billing page", False
    hint = given.get("x-should-retry", "").strip().lower()
    if hint in ("true", "false") and retryable is None:
        retryable = hint == "true"
    return kind(
        text(words.format(remedy=remedy or "check the key")),
        provider=provider,
        status=status,
        request_id=found,
        code=code,
        retry_after=wait,
        retryable=retryable,
    )


def _is_quota(status: int, what: ErrorDetails, wait: float | None) -> bool:
    if status == 429 and what.words & _QUOTA_CODES:
        return True
    if status in (401, 404):
        return False
    if _QUOTA.search(what.message):
        return True
    refilled = wait is not None or _REFILLED.search(what.message)
    return not refilled and _ANY_QUOTA.search(what.message) is not None


def stream_error(
    provider: str,
    body: Mapping[str, Any] | str,
    *,
    headers: Mapping[str, str] | None = None,
    remedy: str = "",
    secrets: tuple[str, ...] = (),
) -> ModelError:
    """The error that a provider tells in the middle of an answer, or instead of one, with the status 200.

    Args:
        provider: the scheme of the provider.
        body: the error object, or what holds one.
        headers: of the response, by lower-case names.
        remedy: what to do about a wrong key.
        secrets: what was sent and must not be quoted.
    """
    what = read_error(body)
    status = next((_STATUS_OF[word] for word in (what.code, what.kind) if word in _STATUS_OF), None)
    if status is None:
        digits = what.code or ""
        status = int(digits) if re.fullmatch(r"[45]\d\d", digits) else 500
    if what.words & _TOO_LONG_CODES:
        status = 400
    return status_error(provider, status, what, headers=headers, remedy=remedy, secrets=secrets)


def bad_answer(
    provider: str,
    what: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    retryable: bool = False,
    secrets: tuple[str, ...] = (),
) -> BadAnswer:
    """The error of an invalid answer.

    Args:
        provider: the scheme of the provider.
        what: what came instead, in words.
        status: the status it came with.
        headers: of the response, by lower-case names.
        retryable: whether asking again may help: not where an address is wrong, but where an answer was mangled.
        secrets: what was sent and must not be quoted.
    """
    found = request_id(headers or {}, secrets)
    number = f" (request {found})" if found else ""
    return BadAnswer(
        f"{provider}{number}: {hide_secrets(what, secrets)}",
        provider=provider,
        status=status,
        request_id=found,
        retryable=retryable,
    )


def request_id(headers: Mapping[str, str], secrets: tuple[str, ...] = ()) -> str | None:
    """The provider's id of a request, or None; without what was sent and must not be quoted."""
    found = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
    return None if found is None else hide_secrets(found, secrets)[:200]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks to wait, or None.

    ``retry-after-ms`` in milliseconds, ``retry-after`` in seconds or as a date (RFC 9110, 10.2.3).
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) / unit
        except ValueError:
            seconds = _seconds_until(text)
        if 0 <= seconds < math.inf:
            return seconds
    return None


def shorten(text: str) -> str:
    """A text on one line, cut to what a message may quote."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}..."


def drop_secrets(error: ModelError, secrets: tuple[str, ...]) -> ModelError:
    """The error, cut off from what led to it where that shows what was sent: a traceback shows it too.

    Args:
        error: about to be raised; its own text is clean.
        secrets: what must not be shown.
    """
    after: BaseException = error
    while (before := after.__cause__ or after.__context__) is not None:
        text = str(before)
        if hide_secrets(text, secrets) != text:
            after.__cause__ = after.__context__ = None
            break
        after = before
    return error


def _any(status: int) -> tuple[type[WireError], str]:
    if status >= 500:
        return ProviderFailed, "the provider failed; try again later"
    return RequestRefused, "the request was refused"


def _seconds_until(text: str) -> float:
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return math.nan
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _page(text: str) -> str:
    # Neither part goes past the next tag, so any page is read once.
    title = re.search(r"<title[^<>]*>([^<]*)</title", text, re.IGNORECASE)
    return f"a web page{f', {shorten(title[1])}' if title else ''}"


def _host(location: str) -> str:
    found = re.match(r"(https?://)?(?:[^/@\s]*@)?([^/\s?#]+)", location)
    return f"{found[1] or ''}{found[2]}"[:200] if found and found[1] else "another address"


def _text(value: Any) -> str | None:
    return str(value)[:200] if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None
