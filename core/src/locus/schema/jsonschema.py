"""JSON Schema as data: looked up, walked, described, asked what it admits, and put together from its parts.

A schema is a mapping, or True (anything) or False (nothing). References stay within their document: what one points at
elsewhere is never fetched and admits everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from locus.schema.text import safe_repr

Schema = Mapping[str, Any]

# References that lead to references; more of them go in a circle.
_LONGEST_CHAIN = 100
# Alternatives within alternatives that are looked into to tell whether a value has a type that they name.
_MOST_NESTED = 6
# The keywords that hold schemas by name, in a list, and directly.
_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def subschemas(schema: Schema) -> list[Schema]:
    """The schemas directly within a schema."""
    found = [s for key in _BY_NAME for s in schema.get(key, {}).values()]
    found += [s for key in _LISTED for s in schema.get(key, ())]
    found += [schema[key] for key in _SINGLE if key in schema]
    return [s for s in found if isinstance(s, Mapping)]


def nodes(schema: Schema) -> list[Schema]:
    """The schema, its definitions, and every schema within them."""
    found = [schema, *(s for s in schema.get("$defs", {}).values() if not isinstance(s, bool))]
    for node in found:
        found += subschemas(node)
    return found


def map_subschemas(schema: Schema, change: Callable[[Schema], Any]) -> dict[str, Any]:
    """A copy of a schema with each schema directly within it changed."""

    def one(value: Any) -> Any:
        return change(value) if isinstance(value, Mapping) else value

    made = dict(schema)
    made.update({key: {name: one(each) for name, each in made[key].items()} for key in _BY_NAME if key in made})
    made.update({key: [one(each) for each in made[key]] for key in _LISTED if key in made})
    made.update({key: one(made[key]) for key in _SINGLE if key in made})
    return made


# --- references --------------------------------------------------------------------------------------


def lookup(ref: str, root: Schema) -> Any:
    """What a reference such as ``#/$defs/Name`` points at within its document, or None."""
    if not ref.startswith("#"):
        return None
    target: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target


def resolve(schema: Any, root: Schema) -> Schema:
    """A schema as a mapping, references followed; one that leads nowhere or in a circle admits everything."""
    for _ in range(_LONGEST_CHAIN):
        if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
            schema = lookup(schema["$ref"], root)
        elif isinstance(schema, Mapping):
            return schema
        else:
            return {"enum": ()} if schema is False else {}
    return {}


# --- values ------------------------------------------------------------------------------------------

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


def identity(value: Any) -> Any:
    """What equals the identity of another value when JSON calls the two equal: true is not 1, 1.0 is, order counts."""
    kind = kind_of(value)
    if kind == "array":
        return (kind, *map(identity, value))
    if kind == "object":
        return frozenset((name, identity(each)) for name, each in value.items())
    return (kind, value) if kind == "boolean" else value


def alternatives(schema: Schema) -> Sequence[Any]:
    """The alternatives of a schema, or nothing when it has none."""
    found: Sequence[Any] = schema.get("anyOf") or schema.get("oneOf") or ()
    return found


def admits(schema: Any, value: Any, root: Schema, depth: int = _MOST_NESTED) -> bool:
    """Whether a value has a JSON type (or is one of the values) that the schema names at its top."""
    schema = resolve(schema, root)
    if "const" in schema and identity(schema["const"]) != identity(value):
        return False
    if "enum" in schema:
        it = identity(value)
        if all(identity(each) != it for each in schema["enum"]):
            return False
    arms = alternatives(schema)
    if arms and not any(admits(arm, value, root, depth - 1) for arm in arms if depth):
        return not depth  # further down, alternatives say nothing
    kinds = schema.get("type")
    if kinds is None:
        return True
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    kind = kind_of(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def describe(schema: Any, root: Schema, depth: int = 2) -> str:
    """What a schema expects, for a message: ``"integer"``, ``"one of 'a', 'b'"``, ``"array of string or null"``."""
    schema = resolve(schema, root)
    if "const" in schema:
        return safe_repr(schema["const"])
    if "enum" in schema:
        values = [safe_repr(value, 40) for value in schema["enum"]]
        if not values:
            return "nothing"
        return "one of " + ", ".join(values[:20]) + (", ..." if len(values) > 20 else "")
    arms = alternatives(schema)
    if arms and depth:
        return " or ".join(dict.fromkeys(describe(arm, root, depth - 1) for arm in arms))
    kinds = schema.get("type", "any value")
    text = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if text == "array" and depth and schema.get("items"):
        return f"array of {describe(schema['items'], root, depth - 1)}"
    if text == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return text


# --- one schema of many parts ------------------------------------------------------------------------
# Models, and the grammars of local ones, do better without references, so each is replaced by what it refers to.
# Only what contains itself stays a definition.

# A title repeats a name; a discriminator points at definitions that are no longer where it says.
_DROPPED = frozenset({"title", "discriminator", "$defs"})

# A schema that would grow beyond this many nodes keeps its references.
_MOST_NODES = 2_000


def rebase(schema: Schema, prefix: str, to: str) -> dict[str, Any]:
    """The schema with the references that start with ``prefix`` starting with ``to`` instead."""
    made = map_subschemas(schema, lambda node: rebase(node, prefix, to))
    name = _target(schema, prefix)
    return made | {"$ref": to + name} if name else made


def inline(schema: Schema, parts: Mapping[str, Schema], prefix: str) -> dict[str, Any]:
    """A schema with its parts put where they are referred to.

    Args:
        schema: refers to parts as ``{"$ref": prefix + key}``.
        parts: by key; what follows the last slash of a key is the name of a definition that stays.
        prefix: of the references that are meant.
    """
    stay = set(parts) if _weight(schema, parts, prefix) > _MOST_NODES else _recursive(parts, prefix)
    names: dict[str, str] = {}
    kept: dict[str, dict[str, Any]] = {}

    def walk(node: Schema) -> dict[str, Any]:
        made = _tidy(map_subschemas({k: v for k, v in node.items() if k not in _DROPPED}, walk))
        called = _target(node, prefix)
        if called not in parts:
            return made
        key = _end(called, parts, prefix)
        del made["$ref"]
        if key not in stay:
            return {**walk(parts[key]), **made}
        if key not in names:
            names[key] = _free(called.rpartition("/")[2], kept)
            kept[names[key]] = {}
            kept[names[key]] = walk(parts[key])
        return {"$ref": f"#/$defs/{names[key]}", **made}

    whole = walk(schema)
    # A recursive type is an object at its root nevertheless, not a reference.
    whole = kept.get(str(whole.pop("$ref", "")).removeprefix("#/$defs/"), {}) | whole
    return whole | {"$defs": kept} if kept else whole


def _tidy(node: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in node:  # alternatives among alternatives are alternatives
        node["anyOf"] = [
            arm
            for each in node["anyOf"]
            for arm in (each["anyOf"] if isinstance(each, dict) and set(each) == {"anyOf"} else (each,))
        ]
    if "enum" in node and "type" not in node:
        kinds = {kind_of(value) for value in node["enum"]}
        if len(kinds) == 1:
            node["type"] = kinds.pop()
    if node.get("required") == []:
        del node["required"]
    return node


def _target(node: Schema, prefix: str) -> str:
    ref = node.get("$ref")
    return ref.removeprefix(prefix) if isinstance(ref, str) and ref.startswith(prefix) else ""


def _free(name: str, taken: Mapping[str, Any]) -> str:
    name = re.sub(r"\W+", "_", name)
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}{number}"
    return free


def _recursive(parts: Mapping[str, Schema], prefix: str) -> set[str]:
    """The parts that lead to themselves."""
    to = {key: {_target(node, prefix) for node in nodes(part)} & parts.keys() for key, part in parts.items()}
    while True:
        further = {key: reached.union(*(to[other] for other in reached)) for key, reached in to.items()}
        if further == to:
            return {key for key, reached in to.items() if key in reached}
        to = further


def _weight(schema: Schema, parts: Mapping[str, Schema], prefix: str) -> int:
    """How many nodes the schema has with all parts in place; a part within itself counts once."""
    known: dict[str, int] = {}

    def weigh(node: Schema) -> int:
        key = _target(node, prefix)
        if key in parts and key not in known:
            known[key] = 0
            known[key] = weigh(parts[key])
        return 1 + known.get(key, 0) + sum(map(weigh, subschemas(node)))

    return weigh(schema)


def _end(key: str, parts: Mapping[str, Schema], prefix: str) -> str:
    """The part that a part which is nothing but a reference leads to: the same thing under another name."""
    for _ in range(len(parts)):
        further = _target(parts[key], prefix) if parts[key].keys() == {"$ref"} else ""
        if further not in parts:
            break
        key = further
    return key
