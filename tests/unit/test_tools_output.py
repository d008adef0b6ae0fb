"""Typed answers: what the model is told, what is understood of its text, and what it hears when it does not fit."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import attrs
import msgspec
import pydantic
import pytest

from locus.core.errors import ConfigError, LocusError
from locus.core.frozen import freeze, thaw
from locus.models.output import OutputError, OutputSchema, output_schema
from locus.models.protocol import OutputSpec


@attrs.frozen
class Frozen:
    city: str
    days: int = 1
    tags: tuple[str, ...] = attrs.field(default=(), converter=tuple)


@dataclasses.dataclass
class Data:
    city: str
    days: int = 1


class Dict(TypedDict):
    city: str
    days: int


class Wire(msgspec.Struct):
    city: str
    days: int = 1


class Model(pydantic.BaseModel):
    city: str
    days: int = pydantic.Field(default=1, ge=1)


@dataclasses.dataclass
class Refusal:
    reason: str


@dataclasses.dataclass
class Node:
    value: int
    next: Node | None = None


PLAIN = {
    "title": "A trip!",
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("source", "value", "name"),
    [
        (Frozen, Frozen("Ulm", 2), "Frozen"),
        (Data, Data("Ulm", 2), "Data"),
        (Dict, {"city": "Ulm", "days": 2}, "Dict"),
        (Wire, Wire("Ulm", 2), "Wire"),
        (Model, Model(city="Ulm", days=2), "Model"),
        (PLAIN, {"city": "Ulm", "days": 2}, "A_trip"),
    ],
    ids=["attrs", "dataclass", "TypedDict", "msgspec", "pydantic", "JSON Schema"],
)
def test_every_kind_of_schema_parses_text_and_data(source: Any, value: Any, name: str) -> None:
    schema = output_schema(source)

    assert isinstance(schema, OutputSchema)
    assert schema.spec.name == name
    assert schema.spec.schema["type"] == "object"
    assert set(schema.spec.schema["properties"]) >= {"city", "days"}
    assert schema.parse('{"city": "Ulm", "days": 2}') == value
    assert schema.parse(freeze({"city": "Ulm", "days": 2})) == value
    assert type(schema.parse(b'{"city": "Ulm", "days": "2"}')) is type(value)
    with pytest.raises(OutputError) as caught:
        schema.parse('{"days": "two"}')
    assert str(caught.value) == "$.days: expected integer, got string 'two'; $.city: missing; expected string"


@pytest.mark.parametrize(
    ("source", "text", "value"),
    [
        (list[Data], '{"value": [{"city": "Ulm"}]}', [Data("Ulm")]),
        (list[Data], '[{"city": "Ulm"}]', [Data("Ulm")]),
        (Data | Refusal, '{"value": {"reason": "no"}}', Refusal("no")),
        (Data | Refusal, '{"city": "Ulm"}', Data("Ulm")),
        (Data | None, '{"value": null}', None),
        (int, "42", 42),
        (int, '{"value": 42}', 42),
        (Literal["yes", "no"], "yes", "yes"),
        (Literal["yes", "no"], ' "no" ', "no"),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, int], '{"value": 1}', {"value": 1}),
        ({"type": "array", "items": {"type": "integer"}}, "[1]", [1]),
        (Node, '{"value": 1, "next": {"value": 2}}', Node(1, Node(2))),
    ],
    ids=str,
)
def test_what_is_not_an_object_is_asked_for_in_one(source: Any, text: str, value: Any) -> None:
    schema = output_schema(source)

    assert schema.spec.schema["type"] == "object"
    assert schema.parse(text) == value


def test_a_schema_of_ones_own_is_used_as_it_is() -> None:
    class Upper:
        spec = OutputSpec(name="upper", schema={"type": "object"})

        def parse(self, answer: Any) -> str:
            return str(answer).upper()

    own = Upper()

    assert output_schema(own) is own


@pytest.mark.parametrize("source", [complex, list[complex], 3, "Data", None.__class__ | complex])
def test_what_has_no_schema_is_refused(source: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        output_schema(source)

    assert "output_schema is" in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/Nothing"},
        {"type": "object", "properties": {"a": {"$ref": "other.json"}}},
        {"type": "object", "properties": ["a"]},
        {"anyOf": 3},
    ],
)
def test_a_broken_json_schema_is_refused(schema: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError):
        output_schema(schema)


def test_a_json_schema_is_checked_in_full() -> None:
    schema = output_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "multipleOf": 2},
                "b": {"type": "array", "items": {"$ref": "#/$defs/Letter"}, "minItems": 1, "maxItems": 2},
                "c": {"type": ["string", "null"], "maxLength": 2, "pattern": "^x"},
                "d": {"const": 1},
                "e": {"allOf": [{"type": "number"}, {"exclusiveMaximum": 1.5}]},
                "f": {"oneOf": [{"type": "object", "required": ["g"]}, {"type": "boolean"}]},
                "h": {"prefixItems": [{"type": "string"}], "items": False},
                "i": True,
                "j": False,
            },
            "$defs": {"Letter": {"enum": ["a", "b"]}},
        }
    )
    right = {"a": 2, "b": ["a"], "c": None, "d": 1, "e": 1, "f": {"g": 0}, "h": ["x"], "i": object}
    wrong = {"a": -1, "b": ["z", "a", "b"], "c": "yyy", "d": True, "e": 2, "f": {}, "h": ["x", 1], "j": 1}

    assert schema.parse(right) == right
    with pytest.raises(OutputError) as caught:
        schema.parse(wrong)
    assert [str(p) for p in caught.value.problems] == [
        "$.a: expected integer >= 1, got -1",
        "$.a: expected integer a multiple of 2, got -1",
        "$.b[0]: expected one of 'a', 'b', got string 'z'",
        "$.b: expected at most 2 items, got 3",
        "$.c: expected at most 2 characters, got 3",
        "$.c: expected a string that matches '^x', got 'yyy'",
        "$.d: expected 1, got boolean True",
        "$.e: expected any value < 1.5, got 2",
        "$.f.g: missing; expected any value",
        "$.h: expected at most 1 items, got 2",
        "$.j: expected nothing, got integer 1",
    ]


# --- JSON in text ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Ulm"}',
        '\n  {"city": "Ulm"}  \n',
        '```json\n{"city": "Ulm"}\n```',
        'Here you are:\n```\n{"city": "Ulm"}\n```\nAnything else?',
        'Sure! The answer is {"city": "Ulm"}. I hope this helps {really}.',
        'First {"a": 1}, then [1, 2], finally {"city": "Ulm"}',
        '<think>maybe {"town": "Ulm", "or": "Bonn", "or else": "Rome"}?</think>{"city": "Ulm"}',
        'A template:\n```json\n{"city": ...}\n```\nThe answer:\n```json\n{"city": "Ulm"}\n```',
        '{"city": {"city": "Ulm"}',
    ],
)
def test_the_answer_is_found_in_what_surrounds_it(text: str) -> None:
    assert output_schema(Data).parse(text) == Data("Ulm")


@pytest.mark.parametrize(
    "text", ["", "no", "{", '{"city": NaN}', "[" * 100_000, "{" * 1_000_000, "9" * 5000, "\ud800", "x" * 3_000_000]
)
def test_what_holds_no_answer_is_rejected_quickly(text: str) -> None:
    began = time.process_time()

    with pytest.raises(OutputError) as caught:
        output_schema(Data).parse(text)

    assert len(str(caught.value)) < 1_000
    assert isinstance(caught.value, LocusError)
    str(caught.value).encode()
    assert time.process_time() - began < 20


def test_the_error_carries_the_schema_and_every_problem() -> None:
    with pytest.raises(OutputError) as caught:
        output_schema(list[Data]).parse('[{"city": 1}, {"days": "x"}]')

    assert caught.value.name == "list_Data"
    assert [p.path for p in caught.value.problems] == ["$[0].city", "$[1].days", "$[1].city"]


def test_a_class_that_checks_itself_is_heard() -> None:
    @attrs.frozen
    class Positive:
        size: int = attrs.field(validator=attrs.validators.gt(0))

    with pytest.raises(OutputError) as caught:
        output_schema(Positive).parse('{"size": -1}')

    assert str(caught.value) == "$: 'size' must be > 0: -1"


def test_what_reaches_the_model_stays_the_same() -> None:
    assert output_schema(Data).spec == output_schema(Data).spec
    assert thaw(output_schema(Data).spec.schema) == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    }
