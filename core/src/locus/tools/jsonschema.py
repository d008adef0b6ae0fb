"""JSON Schema as data: put together, resolved, and asked what it admits.

The subset is what types and their authors produce. A keyword that is not known here restricts nothing: the
conversion to the Python type, which comes after, is the authority.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from locus.tools.text import shown

__all__ = ["admits", "arms", "describe", "inlined", "kind_of", "resolve"]

Schema = Mapping[str, Any]

_MANY = ("properties", "patternProperties")
_EACH = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not")
# A title repeats a name; a discriminator points at definitions that are no longer where it says.
_DROPPED = frozenset({"title", "discriminator", "$defs"})
_MOST_NODES = 2_000


def children(schema: Schema) -> list[Schema]:
    """The schemas directly within a schema."""
    found = [s for key in _MANY for s in schema.get(key, {}).values()]
    found += [s for key in _EACH for s in schema.get(key, ())]
    found += [schema[key] for key in _ONE if key in schema]
    return [s for s in found if isinstance(s, Mapping)]


def inlined(
    schema: Schema, parts: Mapping[str, Schema], kept: dict[str, dict[str, Any]], prefix: str
) -> dict[str, Any]:
    """A schema with its parts put where they are referred to: models read that better than references.

    Args:
        schema: refers to parts as ``{"$ref": prefix + name}``.
        parts: by name.
        kept: where parts go that cannot be put in place (they contain themselves, or it would grow too large),
            under a name not taken yet; they are then referred to as ``#/$defs/name``.
        prefix: of the references that are meant.
    """
    stay = set(parts) if _weight(schema, parts, prefix) > _MOST_NODES else _recursive(parts, prefix)
    names: dict[str, str] = {}

    def walk(node: Schema) -> dict[str, Any]:
        made = _mapped({k: v for k, v in node.items() if k not in _DROPPED}, walk)
        name = _target(node, prefix)
        if name in parts:
            del made["$ref"]
            if name not in stay:
                return {**walk(parts[name]), **made}
            if name not in names:
                names[name] = _free(name, kept)
                kept[names[name]] = {}
                kept[names[name]] = walk(parts[name])
            return {"$ref": f"#/$defs/{names[name]}", **made}
        if "enum" in made and "type" not in made:
            kinds = {kind_of(value) for value in made["enum"]}
            if len(kinds) == 1:
                made["type"] = kinds.pop()
        if made.get("required") == []:
            del made["required"]
        return made

    return walk(schema)


def _mapped(node: dict[str, Any], walk: Callable[[Schema], dict[str, Any]]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        return walk(value) if isinstance(value, Mapping) else value

    for key in _MANY:
        if key in node:
            node[key] = {name: one(value) for name, value in node[key].items()}
    for key in _EACH:
        if key in node:
            node[key] = [one(value) for value in node[key]]
    if "anyOf" in node:  # alternatives among alternatives are alternatives
        node["anyOf"] = [arm for one in node["anyOf"] for arm in (one["anyOf"] if set(one) == {"anyOf"} else (one,))]
    for key in _ONE:
        if key in node:
            node[key] = one(node[key])
    return node


def _target(node: Schema, prefix: str) -> str:
    ref = node.get("$ref")
    return ref.removeprefix(prefix) if isinstance(ref, str) and ref.startswith(prefix) else ""


def _free(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}{number}"
    return free


def _targets(schema: Schema, prefix: str) -> list[str]:
    found, todo = [], [schema]
    while todo:
        node = todo.pop()
        found.append(_target(node, prefix))
        todo += children(node)
    return [name for name in found if name]


def _recursive(parts: Mapping[str, Schema], prefix: str) -> set[str]:
    to = {name: set(_targets(part, prefix)) & set(parts) for name, part in parts.items()}
    reach = {name: set(direct) for name, direct in to.items()}
    for _ in parts:
        reach = {name: found.union(*(to[n] for n in found)) for name, found in reach.items()}
    return {name for name, found in reach.items() if name in found}


def _weight(schema: Schema, parts: Mapping[str, Schema], prefix: str) -> int:
    """How many nodes the schema has with all parts in place; a recursive part counts once."""
    known: dict[str, int] = {}

    def weigh(node: Schema) -> int:
        name = _target(node, prefix)
        if name in parts and name not in known:
            known[name] = 0
            known[name] = weigh(parts[name])
        return 1 + known.get(name, 0) + sum(map(weigh, children(node)))

    return weigh(schema)


def resolve(schema: Any, root: Schema) -> Schema:
    """The schema that stands for a (boolean or referring) schema; what cannot be found admits everything."""
    for _ in range(100):
        if not isinstance(schema, Mapping):
            return {} if schema is not False else {"enum": ()}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        target: Any = root
        for step in ref.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, Mapping) else None
        if target is None:
            return {}
        schema = target
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
