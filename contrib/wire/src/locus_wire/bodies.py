"""The bytes of a request: the same for the same messages, so that prompt caches find what they know; and the way back.

What was encoded once is put in as it is; a request costs the encoding of what is new.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from locus.core.errors import InputError

__all__ = ["hosted_tools", "hosted_tools_of", "join_fields", "json_bytes", "json_value"]

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8. Half a surrogate pair becomes U+FFFD.

    Raises:
        InputError: it has no JSON form.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as e:
        raise InputError(f"a request cannot be written as JSON: {e}; give settings and extras as plain data") from e
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def json_value(text: str | bytes) -> Any:
    """The value of JSON that a server wrote; an invalid number (``NaN``, ``Infinity``, ``1e999``) is null.

    What an answer holds goes back with the next request, and that could not be written.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_number)
    except RecursionError as e:
        raise ValueError("it is nested too deeply") from e


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _no_number(_: str) -> None:
    return None


def hosted_tools(extras: Mapping[str, Any]) -> list[bytes]:
    """The tools that the provider itself runs, as JSON; see `hosted_tools_of`."""
    return [json_bytes(each) for each in hosted_tools_of(extras)]


def hosted_tools_of(extras: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools that the provider itself runs: those of ``ModelSettings(extras={"tools": [...]})``.

    Raises:
        InputError: they are not a list of objects.
    """
    given = extras.get("tools", ())
    if not isinstance(given, list | tuple) or not all(isinstance(each, Mapping) for each in given):
        raise InputError(f"extras['tools'] must be a list of the provider's tools, each an object, got {given!r:.80}")
    return list(given)


def join_fields(fields: Mapping[str, Any], lists: Mapping[str, Sequence[bytes]]) -> bytes:
    """One JSON object.

    Args:
        fields: its plain fields, which come last: they differ from request to request.
        lists: fields that are arrays of what is JSON already, by name, in order; empty ones are left out.
    """
    parts = [json_bytes(name) + b":[" + b",".join(items) + b"]" for name, items in lists.items() if items]
    rest = json_bytes({name: value for name, value in fields.items() if name not in lists})[1:-1]
    if rest:
        parts.append(rest)
    return b"{" + b",".join(parts) + b"}"
