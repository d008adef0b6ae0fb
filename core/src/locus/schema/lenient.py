"""What local models get wrong and a reader can put right without guessing.

Where a string stands and the schema admits no string, and its text is JSON of a kind that the schema admits,
the text is read: ``"3"`` for an integer, ``"[1, 2]"`` for an array, ``"True"`` for a boolean. A whole number
written as ``3.0`` is an integer. A ``null`` for what may be left out and admits no null is left out. Nothing
else is bent: a string that the schema admits stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from locus.schema.jsonschema import Schema, admits, arms, kind_of, resolve

__all__ = ["normalised", "plain"]

_WORDS = {"true": True, "false": False, "null": None, "none": None}
_LONGEST = 1_000_000
_EXACT = 2**53


def normalised(schema: Schema, data: Any, *, fill: bool = False) -> Any:
    """The data as the schema means it, where that is unambiguous; plain and mutable.

    Args:
        schema: also the root that its references refer to.
        data: plain data.
        fill: also write out what makes no difference: the defaults of what is left out, and ``1.0`` for a number
            that came as ``1``. Two calls that mean the same then look the same.
    """
    return _Walk(schema, fill).value(schema, data)


class _Walk:
    def __init__(self, root: Schema, fill: bool) -> None:  # noqa: FBT001  private
        self._root, self._fill = root, fill

    def value(self, schema: Any, data: Any) -> Any:
        schema = resolve(schema, self._root)
        if not admits(schema, data, self._root):
            data = self._read(schema, data)
        alternatives = arms(schema)
        if alternatives:
            fitting = [arm for arm in alternatives if admits(arm, data, self._root)]
            return self.value(fitting[0], data) if len(fitting) == 1 else plain(data)
        kind = kind_of(data)
        if kind == "object":
            return self._object(schema, data)
        if kind == "array":
            heads, rest = schema.get("prefixItems", ()), schema.get("items", {})
            return [self.value(heads[i] if i < len(heads) else rest, each) for i, each in enumerate(data)]
        if self._fill and kind == "integer" and schema.get("type") == "number" and abs(data) <= _EXACT:
            return float(data)
        return data

    def _read(self, schema: Schema, data: Any) -> Any:
        """The value that a text spells, or the whole number that a float is; the data itself when neither fits."""
        found = data
        if isinstance(data, str) and len(data) <= _LONGEST:
            text = data.strip()
            try:
                found = _WORDS[text.lower()] if text.lower() in _WORDS else msgspec.json.decode(text)
            except (ValueError, msgspec.DecodeError, RecursionError):
                return data
        if isinstance(found, float) and found.is_integer() and abs(found) <= _EXACT:
            whole = int(found)
            if not admits(schema, found, self._root) and admits(schema, whole, self._root):
                return whole
        return found if admits(schema, found, self._root) else data

    def _object(self, schema: Schema, data: Mapping[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        rest = schema.get("additionalProperties", {})
        made = {}
        for name, each in data.items():
            expected = properties.get(name, rest)
            optional = name in properties and name not in required
            if each is not None or not optional or admits(expected, None, self._root):
                made[name] = self.value(expected, each)
        if self._fill:
            for name, expected in properties.items():
                if name not in made and isinstance(expected, Mapping) and "default" in expected:
                    made[name] = self.value(expected, expected["default"])
        return made


def plain(data: Any) -> Any:
    """A mutable copy of plain data, made of dicts and lists only."""
    kind = kind_of(data)
    if kind == "object":
        return {name: plain(each) for name, each in data.items()}
    return [plain(each) for each in data] if kind == "array" else data
