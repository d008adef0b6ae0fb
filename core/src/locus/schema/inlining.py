"""A schema and its parts, put together into the one that a model reads.

What is referred to is put in its place: models, and the grammars of local ones, do better without references. Only
what contains itself stays a definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from locus.schema.jsonschema import Schema, children, kind_of, mapped

__all__ = ["inlined", "rebased"]

# A title repeats a name; a discriminator points at definitions that are no longer where it says.
_DROPPED = frozenset({"title", "discriminator", "$defs"})

# A schema that would grow beyond this many nodes keeps its references.
_MOST_NODES = 2_000


def rebased(schema: Schema, prefix: str, to: str) -> dict[str, Any]:
    """The schema with the references that start with ``prefix`` starting with ``to`` instead."""
    made = mapped(schema, lambda node: rebased(node, prefix, to))
    name = _target(schema, prefix)
    return made | {"$ref": to + name} if name else made


def inlined(schema: Schema, parts: Mapping[str, Schema], prefix: str) -> dict[str, Any]:
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
        made = _tidied(mapped({k: v for k, v in node.items() if k not in _DROPPED}, walk))
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
    # A recursive type is an object at its root all the same, not a reference.
    whole = kept.get(str(whole.pop("$ref", "")).removeprefix("#/$defs/"), {}) | whole
    return whole | {"$defs": kept} if kept else whole


def _tidied(node: dict[str, Any]) -> dict[str, Any]:
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


def _targets(schema: Schema, prefix: str) -> set[str]:
    found, todo = set(), [schema]
    while todo:
        node = todo.pop()
        found.add(_target(node, prefix))
        todo += children(node)
    return found


def _recursive(parts: Mapping[str, Schema], prefix: str) -> set[str]:
    to = {key: _targets(part, prefix) & parts.keys() for key, part in parts.items()}

    def reaches_itself(key: str) -> bool:
        seen: set[str] = set()
        todo = list(to[key])
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += to[at]
        return key in seen

    return {key for key in parts if reaches_itself(key)}


def _weight(schema: Schema, parts: Mapping[str, Schema], prefix: str) -> int:
    """How many nodes the schema has with all parts in place; a part within itself counts once."""
    known: dict[str, int] = {}

    def weigh(node: Schema) -> int:
        key = _target(node, prefix)
        if key in parts and key not in known:
            known[key] = 0
            known[key] = weigh(parts[key])
        return 1 + known.get(key, 0) + sum(map(weigh, children(node)))

    return weigh(schema)


def _end(key: str, parts: Mapping[str, Schema], prefix: str) -> str:
    """The part that a part which is nothing but a reference leads to: the same thing under another name."""
    for _ in range(len(parts)):
        further = _target(parts[key], prefix) if parts[key].keys() == {"$ref"} else ""
        if further not in parts:
            break
        key = further
    return key
