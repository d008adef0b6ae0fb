"""`schema_tool`: a tool whose parameters another program describes, such as one behind a protocol.

Such a tool has no signature to read, only a JSON Schema from elsewhere, sent to the model as it is. Only the names
at its top and their plain types are checked before a call, because a foreign schema may be built so that checking it
never ends; the rest is checked by the program that runs the tool.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from attrs import frozen

from locus.core import freeze, thaw
from locus.core.errors import ToolDefinitionError
from locus.core.labels import Reads
from locus.schema import (
    JsonSchemaAdapter,
    ValidationError,
    call_key,
    clean_text,
    describe,
    safe_repr,
)
from locus.tools import ArgumentError, Bound, Effect, Tool, ToolContext, ToolSpec, as_tool, tool

__all__ = ["SchemaTool", "schema_tool"]

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
#: Keywords beside `properties` that may say more of them than their own schemas do.
_FURTHER = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties", "if", "not")


async def _plain_body(ctx: ToolContext[Any]) -> None:
    """Not entered: a tool that takes nothing but its context has every option at its default."""


_PLAIN = as_tool(_plain_body)


def schema_tool(
    fn: Callable[[dict[str, Any], ToolContext[Any]], Awaitable[Any]],
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    origin: str,
    effect: Effect = "once",
    timeout: float | None = None,
    max_result_chars: int = _PLAIN.max_result_chars,
    reads: Reads = _PLAIN.reads,
    targets: Sequence[str] | None = None,
    egress: bool | None = None,
) -> SchemaTool:
    """Make a tool of a function that takes all its arguments as one dict.

    Args:
        fn: ``async (arguments, ctx)``; what it returns is the result, what it raises is the call's error.
        name: what the model calls it: 1 to 64 letters, digits, ``_`` or ``-``.
        description: what the model reads of it.
        parameters: the JSON Schema of the arguments, an object schema; sent to the model as it is.
        origin: where it comes from, for messages. It must be unique among the tools of one plugin:
            a run that is resumed finds a tool again by it.
        effect: what a crash in the body means, as of `tool`.
        timeout: seconds the body may take, or None.
        max_result_chars: how much of a result the model gets.
        reads: whose words its results may hold, as of `tool`.
        targets: the parameters that say whom or what a call reaches, as of `tool`.
        egress: whether a call sends something out, as of `tool`.

    Raises:
        ToolDefinitionError: the name or a label is invalid, or the schema is not a JSON object.
    """
    try:
        plain = tool(
            _PLAIN,
            name=name,
            effect=effect,
            timeout=timeout,
            max_result_chars=max_result_chars,
            reads=reads,
            egress=egress,
        )
    except ToolDefinitionError as e:
        raise ToolDefinitionError(f"{origin}: {str(e).partition(': ')[2]}") from e
    try:
        schema = json.loads(json.dumps(thaw(parameters), allow_nan=False))
        json.dumps(schema, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise ToolDefinitionError(f"{origin}: its parameters are not a JSON Schema: {e}") from e
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ToolDefinitionError(
            f"{origin}: its parameters must be the JSON Schema of an object, got {safe_repr(schema)}"
        )
    made = SchemaTool(
        fn=fn,
        spec=ToolSpec(name=name, description=clean_text(description), parameters=freeze(schema)),
        parameters=plain.parameters,
        is_async=True,
        origin=origin,
        effect=plain.effect,
        timeout=plain.timeout,
        max_result_chars=plain.max_result_chars,
        reads=plain.reads,
        egress=plain.egress,
    )
    # Checked against the parameters that the schema has.
    return made if targets is None else cast("SchemaTool", tool(made, targets=targets))


def _top_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that can be checked at once, also when a stranger wrote it."""
    given = schema.get("properties")
    properties = given if isinstance(given, Mapping) else {}
    required = schema.get("required")
    closed = schema.get("additionalProperties") is False and not any(key in schema for key in _FURTHER)
    return {
        "type": "object",
        "properties": {name: _plain(each) for name, each in properties.items()},
        "required": [name for name in required if isinstance(name, str)] if isinstance(required, list) else [],
        "additionalProperties": not closed,
    }


def _plain(schema: object) -> dict[str, Any]:
    """The type alone, of a schema that says no more about the type in another way."""
    if not isinstance(schema, Mapping) or any(key in schema for key in _FURTHER):
        return {}
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not kinds or not all(isinstance(k, str) and k in _TYPES for k in kinds):
        return {}
    return {"type": kinds}


class _DictBound(Bound):
    """Arguments as one dict."""

    __slots__ = ()

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the body gets them."""
        copied: dict[str, Any] = _copy(self._given)
        return copied

    def call(self, context: ToolContext[Any] | None = None) -> Any:
        """Enter the body once."""
        return self.tool.fn(self.arguments, context)


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _copy(each) for name, each in data.items()}
    return [_copy(each) for each in data] if isinstance(data, list) else data


# What a tool compares, hides and shows of itself is `Tool`'s.
@frozen(kw_only=True, eq=False, slots=False, repr=False)
class SchemaTool(Tool[..., Any]):
    """A `Tool` that `schema_tool` made."""

    @cached_property
    def _top(self) -> dict[str, Any]:
        # Of the spec, which differs if a run continues with the tools that it began with.
        return _top_of(thaw(self.spec.parameters))

    def __get__(self, instance: object, owner: type | None = None) -> SchemaTool:
        """The tool itself: it is not a method."""
        return self

    def bind(self, arguments: Mapping[str, Any]) -> Bound | ArgumentError:
        """Check the names and their plain types; texts that spell numbers, lists and the like are read as such."""
        try:
            given = JsonSchemaAdapter(self._top).check(arguments)
        except ValidationError as e:
            return ArgumentError(self.name, e.problems, self.usage)
        return _DictBound(self, call_key(self.name, given), None, given, freeze(given))

    @property
    def usage(self) -> str:
        """The parameters on one line; their types as far as they are plain."""
        top = self._top
        named = [
            f"{name} ({describe(each, {})}{'' if name in top['required'] else ', optional'})"
            for name, each in top["properties"].items()
        ]
        return ", ".join(named) or "none"
