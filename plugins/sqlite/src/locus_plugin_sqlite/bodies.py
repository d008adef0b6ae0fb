"""From entries to the bytes of a row and back: JSON of the kernel's codec, compressed where that pays.

An entry of a tool call holds its result two or three times (what the tool returned, what the model is told, what the
state keeps), so a row of some size shrinks to a part of itself. The first byte tells the forms apart: ``[`` is
JSON, anything else is zlib's.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from locus.core.journal import Body, entry_from_json, entry_to_json

__all__ = ["from_bytes", "from_json", "packed", "to_bytes", "to_json", "unpacked"]

#: Below this many bytes compressing costs more than a page of the file is worth.
_WORTHWHILE = 1500

#: The fastest level: what repeats, it finds as well as the others.
_LEVEL = 1

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def to_json(bodies: Sequence[Body]) -> list[dict[str, Any]]:
    """The JSON form of what one append adds.

    Raises:
        NotSerialisable: a value has none.
    """
    return [entry_to_json(body) for body in bodies]


def from_json(forms: Sequence[dict[str, Any]]) -> list[Body]:
    """The inverse.

    Raises:
        CheckpointError: one is damaged, or needs a package that is not imported.
    """
    return [entry_from_json(form) for form in forms]


def to_bytes(form: Any) -> bytes:
    """A list of JSON forms as JSON text, not compressed."""
    try:
        return _encode(form)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say and UTF-8 cannot
        return json.dumps(form, separators=(",", ":")).encode()


def packed(text: bytes) -> bytes:
    """What goes into the row."""
    return zlib.compress(text, _LEVEL) if len(text) >= _WORTHWHILE else text


def unpacked(body: bytes) -> bytes:
    """The inverse.

    Raises:
        zlib.error: it is damaged.
    """
    return body if body[:1] == b"[" else zlib.decompress(body)


def from_bytes(text: bytes) -> Any:
    """The inverse of `to_bytes`.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(text)
