"""The schema of an output as OpenAI's servers want it, in the strict form that they decode by where it has one.

That form is the kernel's; what these servers take of it, and how much, is from OpenAI, "Structured model outputs", the
section on supported schemas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from locus.core import thaw
from locus.models import NotStrict, OutputSpec, StrictRules
from locus.models import strict_schema as strict

__all__ = ["output_form", "output_text", "strict_schema"]

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


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The strict form of an object's schema, or None where it has none, or one that is too large.

    Args:
        schema: of an object.
    """
    try:
        made = strict(schema, _RULES)
    except NotStrict:
        return None
    return made if _fits(made) else None


def output_form(output: OutputSpec, *, strict: bool) -> dict[str, Any]:
    """An output with its schema, as both forms of OpenAI have it.

    Args:
        output: what the answer must follow.
        strict: whether the server takes the strict form.
    """
    found = strict_schema(output.schema) if strict and output.strict else None
    return {"name": output.name, "schema": found or thaw(output.schema), "strict": found is not None}


def output_text(output: OutputSpec) -> str:
    """An output as it is told to a server that decodes by no schema."""
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
