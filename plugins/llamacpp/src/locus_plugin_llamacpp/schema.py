"""The JSON Schema that constrains a turn: a call of one of the tools, or the final answer.

llama.cpp compiles it to a grammar, so the order of properties is the order of writing, and a reference
is looked up from the root: the definitions of each tool move there under names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locus.core import thaw
from locus.tools import ToolSpec

__all__ = ["ANSWER", "answer_schema", "turn_schema"]

#: The schema of an answer in plain text.
ANSWER: Mapping[str, Any] = {"type": "string"}

_BY_NAME = frozenset({"properties", "$defs", "definitions"})
_NESTED = frozenset({"items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"})
_DEFINITIONS = ("#/$defs/", "#/definitions/")


def turn_schema(tools: Sequence[ToolSpec], final: str | None, answer: Mapping[str, Any] = ANSWER) -> dict[str, Any]:
    """The schema of one turn.

    Args:
        tools: the tools on offer now.
        final: the name that ends the conversation, or None when it must not end now.
        answer: the schema of the answer.
    """
    definitions: dict[str, Any] = {}
    offered = [_turn(tool.name, _arguments(tool, definitions)) for tool in tools]
    if final is not None:
        inner = _hoist(answer, final, definitions)
        offered.append(_turn(final, _object({"answer": inner})))
    made: dict[str, Any] = {"anyOf": offered}
    if definitions:
        made["$defs"] = definitions
    return made


def answer_schema(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an answer that is not wrapped in a turn."""
    definitions: dict[str, Any] = {}
    made: dict[str, Any] = _hoist(answer, "answer", definitions)
    return {**made, "$defs": definitions} if definitions else made


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _turn(name: str, arguments: Any) -> dict[str, Any]:
    return _object({"tool": {"const": name}, "args": arguments})


def _arguments(tool: ToolSpec, definitions: dict[str, Any]) -> Any:
    # Unless the tool says otherwise, what it does not name is not written.
    return {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        **_hoist(tool.parameters, tool.name, definitions),
    }


def _hoist(schema: Mapping[str, Any], prefix: str, definitions: dict[str, Any]) -> Any:
    """A copy of ``schema`` whose definitions have moved to ``definitions`` under names with ``prefix``."""
    own = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    for name, body in own.items():
        definitions[f"{prefix}.{name}"] = _copy(body, prefix)
    made = _copy({k: v for k, v in schema.items() if k not in ("$defs", "definitions")}, prefix)
    if _refers_to_root(schema):
        definitions[f"{prefix}."] = made
    return made


def _copy(schema: Any, prefix: str) -> Any:
    if not isinstance(schema, Mapping):
        return thaw(schema)  # true and false are schemas too
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            made[key] = _move(value, prefix)
        elif key in _BY_NAME and isinstance(value, Mapping):
            made[key] = {name: _copy(inner, prefix) for name, inner in value.items()}
        elif key in _NESTED:
            made[key] = (
                [_copy(inner, prefix) for inner in value] if isinstance(value, list | tuple) else _copy(value, prefix)
            )
        elif key != "pattern" or _is_supported(value):
            made[key] = thaw(value)
    return made


def _move(reference: str, prefix: str) -> str:
    if reference == "#":
        return f"#/$defs/{prefix}."
    for start in _DEFINITIONS:
        if reference.startswith(start):
            return f"#/$defs/{prefix}.{reference.removeprefix(start)}"
    return reference


def _refers_to_root(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return schema.get("$ref") == "#" or any(map(_refers_to_root, schema.values()))
    return isinstance(schema, list | tuple) and any(map(_refers_to_root, schema))


def _is_supported(pattern: Any) -> bool:
    # llama.cpp drops any other pattern too, with a warning on standard error for each request.
    return isinstance(pattern, str) and pattern[:1] == "^" and pattern[-1:] == "$" and not {"\\", "?"} & set(pattern)
