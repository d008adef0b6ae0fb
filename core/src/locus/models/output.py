"""`OutputSchema`: what an agent's answer must be, and the way from its text to a value.

One protocol for every way to say it: attrs, dataclass, TypedDict, msgspec and pydantic classes, lists and unions
of them, and plain JSON Schema. What does not fit comes back as text that lets the model repair it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, overload, runtime_checkable

from locus.core.errors import ConfigError, LocusError
from locus.core.frozen import frozen, thaw
from locus.core.lazy import Lazy
from locus.models.protocol import OutputSpec
from locus.schema.text import safe_repr

if TYPE_CHECKING:
    from locus.schema import adapter, checking, jsonschema
    from locus.schema.adapter import JsonSchemaAdapter, TypeAdapter
    from locus.schema.checking import Problem
else:
    adapter = Lazy("locus.schema.adapter")
    checking = Lazy("locus.schema.checking")
    jsonschema = Lazy("locus.schema.jsonschema")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: The key of an answer that is not a JSON object, in the object that the model is asked for.
_VALUE = "value"


class OutputError(LocusError):
    """An answer does not follow its schema; the message says to a model how to repair it.

    Args:
        name: of the schema.
        problems: every fault that was found.
    """

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        super().__init__(checking.explain(problems))


@runtime_checkable
class OutputSchema(Protocol[T_co]):
    """What an answer must be. Anything with these two can be given as ``output_schema=``."""

    @property
    def spec(self) -> OutputSpec:
        """What the request carries; providers want the schema of an object."""

    def parse(self, answer: Any, /) -> T_co:
        """The value of an answer.

        Args:
            answer: text with JSON in it, or plain data.

        Raises:
            OutputError: it does not fit.
        """


@overload
def output_schema(source: OutputSchema[T]) -> OutputSchema[T]: ...
@overload
def output_schema(source: type[T]) -> OutputSchema[T]: ...
@overload
def output_schema(source: Any) -> OutputSchema[Any]: ...
def output_schema(source: Any) -> OutputSchema[Any]:
    """The output schema that a type, a JSON Schema (a dict) or an `OutputSchema` means.

    Raises:
        ConfigError: nothing can be made of it.
    """
    if isinstance(source, Mapping):
        try:
            schema = adapter.of_json_schema(source)
        except adapter.InvalidSchema as e:
            raise ConfigError(f"output_schema {e}") from e
        return _Output.of(str(schema.schema.get("title", "")), schema)
    if isinstance(source, OutputSchema) and not isinstance(source, type):
        return source
    try:
        of_type = adapter.of(source)
    except adapter.UnsupportedType as e:
        raise ConfigError(
            f"output_schema is {safe_repr(source)}, for which no JSON Schema can be made: {e}; use a class made by "
            "attrs, dataclass, TypedDict or pydantic, a list or union of them, or a JSON Schema"
        ) from e
    name = getattr(source, "__name__", "") if isinstance(source, type) else ""
    return _Output.of(name or re.sub(r"\b\w+\.", "", str(source)), of_type)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


def _object(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself when it is an object's, else that of an object that holds the value.

    Providers ask for an object at the root, and models keep to it better.
    """
    if _is_object(schema):
        return schema
    value = {key: each for key, each in schema.items() if key != "$defs"}
    whole = {"type": "object", "properties": {_VALUE: value}, "required": [_VALUE], "additionalProperties": False}
    return whole | {"$defs": schema["$defs"]} if "$defs" in schema else whole


@frozen(kw_only=True, eq=False)
class _Output:
    """An `OutputSchema` made of an adapter."""

    spec: OutputSpec
    checked: TypeAdapter | JsonSchemaAdapter

    @classmethod
    def of(cls, name: str, checked: TypeAdapter | JsonSchemaAdapter) -> _Output:
        named = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "answer"
        return cls(spec=OutputSpec(name=named, schema=_object(checked.schema)), checked=checked)

    def parse(self, answer: Any) -> Any:
        first: tuple[Problem, ...] = ()
        for data in self._readings(answer):
            try:
                return self.checked.check(data)
            except checking.ValidationError as e:
                first = first or e.problems
        raise OutputError(self.spec.name, first or (self._no_json(answer),))

    def _readings(self, answer: Any) -> Iterator[Any]:
        """What an answer may mean, the likeliest first."""
        if isinstance(answer, bytes | bytearray):
            answer = answer.decode("utf-8", "replace")
        bare = not _is_object(self.checked.schema)
        for data in _json_values(answer) if isinstance(answer, str) else (thaw(answer),):
            if bare and isinstance(data, dict) and data.keys() == {_VALUE}:
                yield data[_VALUE]
            yield data
        if bare and isinstance(answer, str):
            yield answer.strip()  # "yes", where one word was asked for

    def _no_json(self, answer: str) -> Problem:
        if len(answer) > _LONGEST:
            return checking.Problem("$", f"the answer has {len(answer):,} characters; at most {_LONGEST:,} are read")
        expected = jsonschema.describe(self.checked.schema, self.checked.schema)
        return checking.Problem("$", f"expected JSON ({expected}), got {safe_repr(answer, 200)}")


# --- JSON in the text of an answer: alone, in a fence, or between sentences ---------------------------
# Models wrap what they were asked for. The search is bounded: a hostile text costs a fixed number of attempts.

# Longer texts are not searched, in characters.
_LONGEST = 2_000_000

_ATTEMPTS = 100
_FENCE = r"```[^\n`]*\n(.*?)```"
_OPENING = r"[\[{]"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _json_values(text: str) -> Iterator[Any]:
    """The JSON values that a text may mean, the likeliest first.

    The whole text; else the content of its fences, the last one first; else the objects and arrays between its
    words, the longest first.
    """
    if len(text) > _LONGEST:
        return
    whole = _decode(text.strip())
    if whole:
        yield whole[0]
        return
    fences = [match[1] for match in re.finditer(_FENCE, text, re.DOTALL)][-_ATTEMPTS:]
    for content in reversed(fences):
        yield from _decode(content.strip())
    found: list[tuple[int, Any]] = []
    at, attempts = 0, 0
    search = re.compile(_OPENING).search
    while attempts < _ATTEMPTS and (opening := search(text, at)):
        attempts += 1
        at = opening.start() + 1
        try:
            value, end = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        found.append((end - opening.start(), value))
        at = end
    for _, value in sorted(found, key=lambda each: each[0], reverse=True):
        yield value


def _decode(text: str) -> tuple[Any, ...]:
    try:
        return (_DECODER.decode(text),)
    except (ValueError, RecursionError):
        return ()
