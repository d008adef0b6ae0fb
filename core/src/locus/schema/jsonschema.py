"""JSON Schema as data: walked, resolved, and asked what it admits.

The subset is what types and their authors produce. A keyword that is not known here restricts nothing: the
conversion to the Python type, which comes after, is the authority.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from locus.schema.text import shown

__all__ = ["Schema", "admits", "arms", "children", "describe", "kind_of", "mapped", "referred", "resolve"]

Schema = Mapping[str, Any]

# References that lead to references; more of them go in a circle.
_LONGEST_CHAIN = 100
_MANY = ("properties", "patternProperties")
_EACH = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not")


def children(schema: Schema) -> list[Schema]:
    """The schemas directly within a schema."""
    found = [s for key in _MANY for s in schema.get(key, {}).values()]
    found += [s for key in _EACH for s in schema.get(key, ())]
    found += [schema[key] for key in _ONE if key in schema]
    return [s for s in found if isinstance(s, Mapping)]


def mapped(schema: Schema, change: Callable[[Schema], Any]) -> dict[str, Any]:
    """A copy of a schema with each schema directly within it changed."""

    def one(value: Any) -> Any:
        return change(value) if isinstance(value, Mapping) else value

    made = dict(schema)
    made.update({key: {name: one(each) for name, each in made[key].items()} for key in _MANY if key in made})
    made.update({key: [one(each) for each in made[key]] for key in _EACH if key in made})
    made.update({key: one(made[key]) for key in _ONE if key in made})
    return made


def referred(ref: str, root: Schema) -> Any:
    """What a reference within a document points at, or None."""
    if not ref.startswith("#"):
        return None
    target: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target


def resolve(schema: Any, root: Schema) -> Schema:
    """The schema that stands for a (boolean or referring) schema; what cannot be found admits everything."""
    for _ in range(_LONGEST_CHAIN):
        if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
            schema = referred(schema["$ref"], root)
        elif isinstance(schema, Mapping):
            return schema
        else:
            return {"enum": ()} if schema is False else {}
    return {}


_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
    list: "array",
    tuple: "array",
    dict: "object",
}


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "array"
    return next((name for cls, name in _KINDS.items() if isinstance(value, cls)), type(value).__name__)


def arms(schema: Schema) -> Sequence[Any]:
    """The alternatives of a schema, or nothing when it has none."""
    found: Sequence[Any] = schema.get("anyOf") or schema.get("oneOf") or ()
    return found


def admits(schema: Any, value: Any, root: Schema) -> bool:
    """Whether a value has a JSON type (or is one of the values) that the schema names at its top."""
    schema = resolve(schema, root)
    if "const" in schema:
        return same(schema["const"], value)
    if "enum" in schema:
        return any(same(each, value) for each in schema["enum"])
    alternatives = arms(schema)
    if alternatives:
        return any(admits(arm, value, root) for arm in alternatives)
    kinds = schema.get("type")
    if kinds is None:
        return True
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    kind = kind_of(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def describe(schema: Any, root: Schema, depth: int = 2) -> str:
    """What a schema expects, for a message: ``"integer"``, ``"one of 'a', 'b'"``, ``"array of string or null"``."""
    schema = resolve(schema, root)
    if "const" in schema:
        return shown(schema["const"])
    if "enum" in schema:
        values = [shown(value, 40) for value in schema["enum"]]
        if not values:
            return "nothing"
        return "one of " + ", ".join(values[:20]) + (", ..." if len(values) > 20 else "")
    alternatives = arms(schema)
    if alternatives and depth:
        return " or ".join(dict.fromkeys(describe(arm, root, depth - 1) for arm in alternatives))
    kinds = schema.get("type", "any value")
    text = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if text == "array" and depth and schema.get("items"):
        return f"array of {describe(schema['items'], root, depth - 1)}"
    if text == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return text
