"""JSON text: decoded and encoded by the fastest there is, and one canonical form for checksums.

msgspec refuses what JSON can say and UTF-8 cannot, half of a surrogate pair; there the standard library answers.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

__all__ = ["canonical", "decode", "encode"]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode_any = json.JSONDecoder(parse_constant=_refuse).decode


def decode(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return _decode_any(text if isinstance(text, str) else text.decode())


def encode(form: Any) -> bytes:
    """A JSON text of a value."""
    try:
        return _encode(form)
    except UnicodeEncodeError:
        return json.dumps(form, separators=(",", ":")).encode()


#: The text of a value that is the same however it was spaced, ordered and escaped before: ASCII, keys in order.
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
