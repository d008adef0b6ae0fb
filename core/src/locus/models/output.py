"""`OutputSchema`: what an agent's answer must be, and the way from its text to a value.

One protocol for every way to say it: attrs, dataclass, TypedDict, msgspec and pydantic classes, lists and unions
of them, and plain JSON Schema. What does not fit comes back as text that lets the model repair it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

from attrs import frozen

from locus.core.errors import ConfigError, LocusError
from locus.core.frozen import thaw
from locus.models.extract import LONGEST, json_values
from locus.models.protocol import OutputSpec
from locus.schema.jsonschema import children, describe, referred
from locus.schema.jsontype import Misfit, NoJsonForm, json_type
from locus.schema.lenient import normalised
from locus.schema.problems import Problem, explained, problems
from locus.schema.text import shown

__all__ = ["OutputError", "OutputSchema", "output_schema"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Where an answer that is no JSON object stands in the object that the model is asked for.
_VALUE = "value"


class OutputError(LocusError):
    """An answer does not follow its schema; the message tells a model how to repair it.

    Args:
        name: of the schema.
        problems: every fault that was found.
    """

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        super().__init__(explained(problems))


@runtime_checkable
class OutputSchema(Protocol[T_co]):
    """What an answer must be. Anything with these two can be given as ``output_schema=``."""

    @property
    def spec(self) -> OutputSpec:
        """What the model is told; providers want the schema of an object."""
        ...

    def parse(self, answer: Any, /) -> T_co:
        """The value of an answer.

        Args:
            answer: text with JSON in it, or plain data.

        Raises:
            OutputError: it does not fit.
        """
        ...


@overload
def output_schema(source: OutputSchema[T]) -> OutputSchema[T]: ...
@overload
def output_schema(source: type[T]) -> OutputSchema[T]: ...
@overload
def output_schema(source: Any) -> OutputSchema[Any]: ...
def output_schema(source: Any) -> OutputSchema[Any]:
    """The output schema that a type, a JSON Schema (a dict) or an `OutputSchema` stands for.

    Raises:
        ConfigError: nothing can be made of it.
    """
    if isinstance(source, Mapping):
        return _of_json_schema(source)
    if isinstance(source, OutputSchema) and not isinstance(source, type):
        return source
    try:
        kind = json_type(source)
    except NoJsonForm as e:
        raise ConfigError(
            f"output_schema is {shown(source)}, for which no JSON Schema can be made: {e}; use a class made by "
            "attrs, dataclass, TypedDict or pydantic, a list or union of them, or a JSON Schema"
        ) from e
    name = getattr(source, "__name__", "") if isinstance(source, type) else ""
    return _Output.of(name or re.sub(r"\b\w+\.", "", str(source)), kind.schema, kind.load)


def _of_json_schema(source: Mapping[str, Any]) -> OutputSchema[Any]:
    schema = thaw(source)
    _check(schema)

    def load(data: Any) -> Any:
        better = normalised(schema, data)
        found = problems(schema, better)
        if found:
            raise Misfit(found)
        return better

    return _Output.of(str(schema.get("title", "")), schema, load)


def _check(root: dict[str, Any]) -> None:
    try:
        todo: list[Mapping[str, Any]] = [root, *root.get("$defs", {}).values()]
        while todo:
            node = todo.pop()
            ref = node.get("$ref", "#")
            if referred(ref, root) is None:
                raise ConfigError(f"output_schema refers to {ref!r}, which is not in it; put that into its '$defs'")
            todo += children(node)
    except (AttributeError, TypeError) as e:
        raise ConfigError(f"output_schema is no JSON Schema ({e}); it is {shown(root, 200)}") from e


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
    """An `OutputSchema` made of a schema and a loader that raises `Misfit`."""

    spec: OutputSpec
    schema: Mapping[str, Any]
    load: Callable[[Any], Any]

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any], load: Callable[[Any], Any]) -> _Output:
        named = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "answer"
        return cls(spec=OutputSpec(name=named, schema=_object(schema)), schema=schema, load=load)

    def parse(self, answer: Any) -> Any:
        first: tuple[Problem, ...] = ()
        for data in self._readings(answer):
            try:
                return self.load(data)
            except Misfit as e:
                first = first or e.problems
        raise OutputError(self.spec.name, first or (self._no_json(answer),))

    def _readings(self, answer: Any) -> Iterator[Any]:
        """What an answer may mean, the likeliest first."""
        if isinstance(answer, bytes | bytearray):
            answer = answer.decode("utf-8", "replace")
        bare = not _is_object(self.schema)
        for data in json_values(answer) if isinstance(answer, str) else (thaw(answer),):
            if bare and isinstance(data, dict) and data.keys() == {_VALUE}:
                yield data[_VALUE]
            yield data
        if bare and isinstance(answer, str):
            yield answer.strip()  # "yes", where one word was asked for

    def _no_json(self, answer: str) -> Problem:
        if len(answer) > LONGEST:
            return Problem("$", f"the answer has {len(answer):,} characters; at most {LONGEST:,} are read")
        return Problem("$", f"expected JSON ({describe(self.schema, self.schema)}), got {shown(answer, 200)}")
