"""The schema of an output in the form that OpenAI's servers expect: strict, if it has a strict form.

Which keywords the servers accept, and how many properties, is documented by OpenAI in "Structured model outputs", in
the section on supported schemas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from locus.core import thaw
from locus.models import OutputSpec
from locus_wire.strict_schemas import NotStrict, StrictRules, strict_schema

__all__ = ["openai_strict_schema", "output_form", "output_text"]

_RULES = StrictRules(
    keywords=frozenset(
        {
            "pattern",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minItems",
            "maxItems",
        }
    ),
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}),
)

#: Levels of objects and arrays, and properties of all objects together.
_DEEPEST, _MOST = 10, 5000


def openai_strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The strict form of a schema, or None if it has none or the strict form exceeds the servers' limits.

    Args:
        schema: the schema of an object.
    """
    try:
        made = strict_schema(schema, _RULES)
    except NotStrict:
        return None
    return made if _fits(made) else None


def output_form(output: OutputSpec, *, strict: bool) -> dict[str, Any]:
    """An output with its schema, as both forms of OpenAI have it.

    Args:
        output: what the answer must follow.
        strict: whether the server takes the strict form.
    """
    found = openai_strict_schema(output.schema) if strict and output.strict else None
    return {"name": output.name, "schema": found or thaw(output.schema), "strict": found is not None}


def output_text(output: OutputSpec) -> str:
    """An output as text for a server that does not decode by a schema."""
    return f"Answer with JSON alone, which follows this JSON Schema: {json.dumps(output.schema)}"


def _fits(schema: Mapping[str, Any]) -> bool:
    todo: list[tuple[Mapping[str, Any], int]] = [(schema, 0), *((each, 1) for each in schema.get("$defs", {}).values())]
    properties = 0
    while todo:
        node, depth = todo.pop()
        if depth > _DEEPEST:
            return False
        inner = node.get("properties", {})
        properties += len(inner)
        todo += [(each, depth + 1) for each in inner.values()]
        todo += [(node["items"], depth + 1)] if "items" in node else []
        todo += [(each, depth) for each in node.get("anyOf", ())]
    return properties <= _MOST
