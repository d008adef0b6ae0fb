"""`OutputSchema`: what an agent's answer must be, and the way from its text to a value.

One protocol for every way to say it: attrs, dataclass, TypedDict, msgspec and pydantic classes, lists and unions
of them, and plain JSON Schema. What does not fit comes back as text that lets the model repair it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar, overload, runtime_checkable

from attrs import field, frozen

from locus.core.errors import ConfigError, LocusError
from locus.core.frozen import FrozenDict, freeze, thaw
from locus.tools.extract import LONGEST, json_values
from locus.tools.jsonschema import admits, children, resolve
from locus.tools.jsontype import JsonType, Misfit, NoJsonForm, json_type
from locus.tools.problems import Problem, explained, problems
from locus.tools.text import shown

__all__ = ["OutputMismatch", "OutputSchema", "output_schema"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Where an answer that is no JSON object stands in the object that the model is asked for.
_VALUE = "value"


class OutputMismatch(LocusError):
    """An answer does not fit its schema; the message tells a model how to repair it.

    Args:
        name: of the schema.
        problems: every fault that was found.
    """

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        super().__init__(f"the answer does not fit the schema {name!r}: {explained(problems)}")


@runtime_checkable
class OutputSchema(Protocol[T_co]):
    """What an answer must be. Anything with these three can be given as ``output_schema=``."""

    @property
    def name(self) -> str:
        """Letters, digits, ``_`` and ``-``, at most 64."""
        ...

    @property
    def json_schema(self) -> Mapping[str, Any]:
        """What the model is told: always the schema of an object."""
        ...

    def parse(self, answer: Any) -> T_co:
        """The value of an answer.

        Args:
            answer: text with JSON in it, or plain data.

        Raises:
            OutputMismatch: it does not fit.
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
    return _Typed(_named(getattr(source, "__name__", "") or _short(source)), kind)


def _short(source: Any) -> str:
    return re.sub(r"\b\w+\.", "", str(source))


def _named(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:64] or "answer"


def _wrapped(schema: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """The schema of an object: the schema itself when it is one, else of an object that holds the value.

    Providers ask for an object at the root, and models keep to it better.
    """
    if resolve(schema, schema).get("type") == "object" and "$ref" not in schema:
        frozen_schema: FrozenDict[str, Any] = freeze(schema)
        return frozen_schema
    defs = schema.get("$defs")
    value = {key: each for key, each in schema.items() if key != "$defs"}
    whole = {"type": "object", "properties": {_VALUE: value}, "required": [_VALUE], "additionalProperties": False}
    wrapped: FrozenDict[str, Any] = freeze(whole | {"$defs": defs} if defs else whole)
    return wrapped


def _candidates(answer: Any, name: str) -> Iterator[Any]:
    if isinstance(answer, bytes | bytearray):
        answer = bytes(answer).decode("utf-8", "replace")
    if not isinstance(answer, str):
        yield thaw(answer)
        return
    empty = True
    for value in json_values(answer):
        empty = False
        yield value
    if empty:
        why = f"no JSON in {shown(answer, 200)}" if len(answer) <= LONGEST else f"longer than {LONGEST:,} characters"
        raise OutputMismatch(name, (Problem("$", f"expected JSON that follows the schema, got {why}"),))


class _Parser(Generic[T]):
    """Tries what an answer may mean; subclasses load one candidate."""

    name: str
    json_schema: FrozenDict[str, Any]

    def _load(self, data: Any) -> T:
        raise NotImplementedError

    def parse(self, answer: Any) -> T:
        first: tuple[Problem, ...] = ()
        for data in _candidates(answer, self.name):
            for each in self._readings(data):
                try:
                    return self._load(each)
                except Misfit as e:
                    first = first or e.problems
        raise OutputMismatch(self.name, first)

    def _readings(self, data: Any) -> Iterator[Any]:
        raise NotImplementedError
