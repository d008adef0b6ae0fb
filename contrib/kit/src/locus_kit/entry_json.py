"""From entries to JSON text and back, by the kernel's codec and the fastest encoder there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from locus.core.journal import Body, entry_from_json, entry_to_json

__all__ = ["from_bytes", "from_json", "to_bytes", "to_json"]

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
    """A JSON form as text."""
    try:
        return _encode(form)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say and UTF-8 cannot
        return json.dumps(form, separators=(",", ":")).encode()


def from_bytes(text: bytes) -> Any:
    """The inverse of `to_bytes`.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(text)
