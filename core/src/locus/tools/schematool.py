"""`schema_tool`: a tool whose parameters another program describes, such as one behind a protocol.

There is no signature to read, only a JSON Schema from elsewhere. It goes to the model as it is. What it says in full is
checked by whoever wrote it: a schema of others may be built so that checking it never ends, so the kernel looks at what
costs nothing to look at, the names at its top and their plain types.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from attrs import frozen

from locus.core.errors import ToolDefinitionError
from locus.core.frozen import EMPTY, freeze, thaw
from locus.schema.canonical import canonical, key_of
from locus.schema.jsonschema import describe
from locus.schema.jsontype import JsonType
from locus.schema.lenient import normalised
from locus.schema.problems import Problem, problems
from locus.schema.text import clean, shown
from locus.tools.context import ToolContext
from locus.tools.decorator import is_tool_name
from locus.tools.definition import RESULT_CHARS, ArgumentError, Bound, Tool
from locus.tools.parameters import Parameters
from locus.tools.spec import Effect, ToolSpec

__all__ = ["SchemaTool", "schema_tool"]

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
#: What stands beside `properties` and may say more of them than their own schemas do.
_FURTHER = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties", "if", "not")
_CONTEXT = "ctx"


def schema_tool(
    fn: Callable[[dict[str, Any], ToolContext[Any]], Awaitable[Any]],
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    origin: str,
    effect: Effect = "once",
    timeout: float | None = None,
    max_result_chars: int = RESULT_CHARS,
) -> SchemaTool:
    """Make a tool of a function that takes all its arguments as one dict.

    Args:
        fn: ``async (arguments, ctx)``; what it returns is the result, what it raises is the call's error.
        name: what the model calls it: 1 to 64 letters, digits, ``_`` or ``-``.
        description: what the model is told.
        parameters: the JSON Schema of the arguments, an object schema; sent to the model as it is.
        origin: where it comes from, for messages. Of the tools that one plugin brings to a run each has another one:
            a run that is resumed finds a tool again by it.
        effect: what a crash in the body means, as of `tool`.
        timeout: seconds the body may take, or None.
        max_result_chars: how much of a result the model gets.

    Raises:
        ToolDefinitionError: the name is none, or the schema is no JSON object.
    """
    if not is_tool_name(name):
        raise ToolDefinitionError(f"{origin}: {shown(name)} is no name; it has 1 to 64 letters, digits, '_' or '-'")
    if effect not in get_args(Effect):
        raise ToolDefinitionError(f"{origin}: effect is {shown(effect)}; it must be 'pure', 'keyed' or 'once'")
    try:
        schema = json.loads(json.dumps(thaw(parameters), allow_nan=False))
        json.dumps(schema, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise ToolDefinitionError(f"{origin}: its parameters are no JSON Schema: {e}") from e
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ToolDefinitionError(f"{origin}: its parameters are {shown(schema)}; they must be the schema of an object")
    return SchemaTool(
        fn=fn,
        spec=ToolSpec(name=name, description=clean(description), parameters=freeze(schema)),
        parameters=_parameters(_top(schema)),
        is_async=True,
        origin=origin,
        effect=effect,
        timeout=timeout,
        max_result_chars=max_result_chars,
    )


def _parameters(top: dict[str, Any]) -> Parameters:
    return Parameters(
        whole=JsonType(dict[str, Any], top),
        single=EMPTY,
        context=_CONTEXT,
        positional=(),
        plain=True,
        open=True,
        numbers=True,
    )


def _top(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Of a schema what can be checked at once, whoever wrote it."""
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


class _Given(Bound):
    """Arguments as one dict."""

    __slots__ = ("_data",)

    def __init__(self, tool: SchemaTool, key: str, data: dict[str, Any]) -> None:
        super().__init__(tool, key, None, EMPTY)
        self._data = data

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the body gets them."""
        copied: dict[str, Any] = _copied(self._data)
        return copied

    def call(self, context: ToolContext[Any] | None = None) -> Any:
        """Enter the body once."""
        return self.tool.fn(_copied(self._data), context)


def _copied(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _copied(each) for name, each in data.items()}
    return [_copied(each) for each in data] if isinstance(data, list) else data


# What a tool compares, hides and shows of itself is `Tool`'s.
@frozen(kw_only=True, eq=False, slots=False, repr=False)
class SchemaTool(Tool[..., Any]):
    """A `Tool` that `schema_tool` made."""

    def __get__(self, instance: object, owner: type | None = None) -> SchemaTool:
        """The tool itself: it is nobody's method."""
        return self

    def bind(self, arguments: Mapping[str, Any]) -> Bound | ArgumentError:
        """Check the names and their plain types; texts that spell numbers, lists and the like are read as such."""
        top = self.parameters.whole.schema
        try:
            given = normalised(top, thaw(arguments))
            found = problems(top, given)
            key = key_of(self.name.encode(), canonical(given, numbers=True))
        except Exception:  # noqa: BLE001  a model may nest what it likes
            return ArgumentError(self.name, (Problem("$", "cannot be read, it may be nested too deeply"),), self.usage)
        return ArgumentError(self.name, found, self.usage) if found else _Given(self, key, given)

    @property
    def usage(self) -> str:
        """The parameters on one line; their types as far as they are plain."""
        top = self.parameters.whole.schema
        named = [
            f"{name} ({describe(each, {})}{'' if name in top['required'] else ', optional'})"
            for name, each in top["properties"].items()
        ]
        return ", ".join(named) or "none"
