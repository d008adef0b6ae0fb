"""What a request asks for: its parameters, and the fields of its form."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from locus.core.errors import InputError

__all__ = ["get_id", "get_number", "read_form", "read_number"]

#: Bytes of a form: an answer is a text that a person has typed.
_FORM = 1_000_000


def get_id(request: Request) -> str:
    """The thread that a request is about.

    Raises:
        InputError: it names none.
    """
    thread_id = request.query_params.get("id", "")
    if not thread_id:
        raise InputError("expected a thread, as ?id=")
    return thread_id


def get_number(request: Request, name: str) -> int | None:
    """A number, or None where the request has none of that name.

    Raises:
        InputError: it is not a number, or below 0.
    """
    text = request.query_params.get(name, "")
    return read_number(name, text) if text else None


def read_number(name: str, text: str) -> int:
    """The number that a text is.

    Raises:
        InputError: it is not a number, or below 0.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InputError(f"{name} must be a number, got {text!r:.40}")
    return int(text)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form.

    Raises:
        InputError: it is not one, or too long.
    """
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise InputError("expected a form")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _FORM:
            raise InputError(f"a form may have {_FORM:,} bytes")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
