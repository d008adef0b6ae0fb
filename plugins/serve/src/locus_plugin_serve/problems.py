"""`Problem`: why a request is not answered as it wants, as HTTP says it and as JSON in the shape of OpenAI's API."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Self

from starlette.responses import JSONResponse

from locus.core.errors import (
    ConfigError,
    DeadLetter,
    InputError,
    InterruptMismatch,
    LocusError,
    NothingToResume,
    RequestSuperseded,
    StoreError,
    ThreadBusy,
)
from locus.plugins import scrub

__all__ = ["Problem", "as_problem"]

_log = logging.getLogger("locus.serve")

#: Statuses by error; what is not listed is a failure of the server, whose text stays in its log.
_STATUSES: tuple[tuple[type[LocusError], int, str], ...] = (
    (ThreadBusy, 409, "thread_busy"),
    (RequestSuperseded, 409, "request_superseded"),
    (InterruptMismatch, 409, "interrupt_mismatch"),
    (DeadLetter, 409, "dead_letter"),
    (NothingToResume, 409, "nothing_to_resume"),
    (InputError, 400, "invalid_input"),
    (ConfigError, 400, "invalid_option"),
)

#: Seconds after which a client may ask a busy server again.
_SOON = 1


class Problem(Exception):
    """Why a request is refused.

    Args:
        status: of the answer.
        text: a sentence for people.
        kind: the ``type`` of the error.
        code: what programs look at, or ``""``.
        param: the part of the request that is wrong, or ``""``.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        kind: str = "invalid_request_error",
        code: str = "",
        param: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.kind, self.code, self.param = status, text, kind, code, param
        self.headers = dict(headers or {})

    @classmethod
    def of_input(cls, text: str, *, param: str = "", code: str = "invalid_input") -> Self:
        """A request that cannot be understood."""
        return cls(400, text, param=param, code=code)

    @classmethod
    def of_load(cls, text: str, *, seconds: int = _SOON) -> Self:
        """A server that has no room now."""
        return cls(503, text, kind="server_error", code="overloaded", headers={"Retry-After": str(seconds)})

    @classmethod
    def of_limit(cls, text: str, *, code: str, seconds: int = _SOON) -> Self:
        """A user who has used up what a user may use."""
        return cls(429, text, kind="rate_limit_error", code=code, headers={"Retry-After": str(seconds)})

    def to_json(self) -> dict[str, Any]:
        """The body of the answer."""
        error = {"message": self.text, "type": self.kind, "code": self.code or None, "param": self.param or None}
        return {"error": error}

    def to_response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.to_json(), self.status, self.headers)


def as_problem(error: Exception) -> Problem:
    """What a client reads about an error; one that is the server's is written to the log instead."""
    if isinstance(error, Problem):
        return error
    for cls, status, code in _STATUSES:
        if isinstance(error, cls):
            return Problem(status, scrub(str(error)), code=code)
    _log.error("a request failed: %s: %s", type(error).__name__, scrub(str(error)))
    if isinstance(error, StoreError):
        return Problem.of_load("the store of the server failed; nothing that was accepted is lost")
    return Problem(500, "the server failed; its log says why", kind="server_error", code="internal_error")
