"""A JSON Schema in the strict form that OpenAI's servers decode by, where it has one.

Source: OpenAI, "Structured model outputs", the section on supported schemas. In the strict form every property is
required and no other one is allowed. What may be left out may be null there instead, and the kernel reads such a null
as left out, so nothing changes its meaning. What only narrows a value and is not supported is left out: answers are
checked here all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core.frozen import thaw

__all__ = ["strict_schema"]

_KEPT = frozenset(
    {
        "type",
        "enum",
        "const",
        "description",
        "title",
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    }
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_DEEPEST = 10
_MOST = 5000

#: What changes what is meant, and has no strict form.
_REFUSED = frozenset(
    {
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "prefixItems",
        "dependentRequired",
        "dependentSchemas",
        "contains",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
    }
)


class _NoStrictForm(Exception):
    """A part of the schema means what the strict form cannot say."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The strict form of an object's schema, or None where it has none.

    Args:
        schema: of an object.
    """
    walk = _Walk(schema)
    try:
        made = walk.node(schema, 0)
        if made.get("type") != "object":
            return None
        definitions = {name: walk.node(part, 1) for name, part in schema.get("$defs", {}).items()}
    except _NoStrictForm:
        return None
    return made | {"$defs": definitions} if definitions else made


class _Walk:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._known = {f"#/$defs/{name}" for name in root.get("$defs", {})} | {"#"}
        self._properties = 0

    def node(self, schema: Any, depth: int) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or depth > _DEEPEST or schema.keys() & _REFUSED:
            raise _NoStrictForm
        if "$ref" in schema:
            if schema["$ref"] not in self._known:
                raise _NoStrictForm
            return {"$ref": schema["$ref"]}
        made = {key: thaw(value) for key, value in schema.items() if key in _KEPT}
        if schema.get("format") in _FORMATS:
            made["format"] = schema["format"]
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if alternatives:
            made["anyOf"] = [self.node(each, depth) for each in alternatives]
            return made
        kinds = schema.get("type")
        named = (kinds,) if isinstance(kinds, str) else tuple(kinds or ())
        if not named and not schema.keys() & {"enum", "const"}:
            raise _NoStrictForm  # anything at all
        if "object" in named:
            made |= self._object(schema, depth)
        if "array" in named:
            made["items"] = self.node(schema.get("items"), depth + 1)
        return made

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        if schema.get("additionalProperties", not properties) is not False and (
            not properties or "additionalProperties" in schema
        ):
            raise _NoStrictForm  # its names are not known beforehand
        self._properties += len(properties)
        if self._properties > _MOST or set(required) - set(properties):
            raise _NoStrictForm
        made = {}
        for name, each in properties.items():
            node = self.node(each, depth + 1)
            made[name] = node if name in required else _nullable(node)
        return {"properties": made, "required": list(properties), "additionalProperties": False}


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    kinds = node.get("type")
    if "anyOf" in node:
        if not any(each.get("type") == "null" for each in node["anyOf"]):
            node["anyOf"] = [*node["anyOf"], {"type": "null"}]
        return node
    if isinstance(kinds, str) and "enum" not in node and "const" not in node:
        return node if kinds == "null" else {**node, "type": [kinds, "null"]}
    if isinstance(kinds, list) and "null" in kinds:
        return node
    about: dict[str, Any] = {key: node.pop(key) for key in ("description", "title") if key in node}
    return {**about, "anyOf": [node, {"type": "null"}]}
