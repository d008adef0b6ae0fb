"""The strict form says what the schema says, or there is none."""

from __future__ import annotations

import json
from typing import Any, Literal

import attrs
import pytest

from locus.models.output import output_schema
from locus_wire.openai_schemas import openai_strict_schema


@attrs.frozen
class Address:
    street: str
    number: int | None = None


@attrs.frozen
class Person:
    name: str
    address: Address | None = None
    tags: list[str] = attrs.field(factory=list)
    kind: Literal["a", "b"] = "a"
    age: int = 3


def objects(schema: Any) -> list[dict[str, Any]]:
    found = [schema] if isinstance(schema, dict) and schema.get("type") == "object" else []
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return found + [each for part in inner for each in objects(part)]


def test_everything_is_required_and_nothing_else_is_allowed() -> None:
    made = openai_strict_schema(output_schema(Person).spec.schema)
    assert len(objects(made)) == 2
    for each in objects(made):
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False
    assert made is not None
    assert "default" not in made["properties"]["age"]
    assert made["properties"]["age"]["description"] == "default: 3"


def test_what_may_be_left_out_may_be_null_and_means_the_same() -> None:
    schema = output_schema(Person)
    made = openai_strict_schema(schema.spec.schema)
    assert made is not None
    for name in ("age", "kind"):
        assert made["properties"][name]["anyOf"][1] == {"type": "null"}
    nulls = json.dumps({"name": "Ann", "address": None, "tags": None, "kind": None, "age": None})
    assert schema.parse(nulls) == Person("Ann")


def test_a_type_that_contains_itself_has_a_strict_form() -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}}
    made = openai_strict_schema({**node, "$defs": {"Node": node}})
    assert made is not None
    assert made["$defs"]["Node"]["required"] == ["next"]
    assert made["properties"]["next"]["anyOf"][0] == {"$ref": "#/$defs/Node"}


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "array"},
        {"type": "string", "not": {"const": "a"}},
        {"$ref": "https://example.com/schema"},
        True,
    ],
)
def test_what_the_strict_form_cannot_say_has_none(part: Any) -> None:
    assert openai_strict_schema({"type": "object", "properties": {"x": part}, "required": ["x"]}) is None


def test_a_schema_of_something_else_than_an_object_has_none() -> None:
    assert openai_strict_schema({"type": "string"}) is None
    assert (
        openai_strict_schema({"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False})
        is None
    )


def test_an_object_without_properties_has_one() -> None:
    made = openai_strict_schema({"type": "object", "properties": {}, "additionalProperties": False})
    assert made == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_what_is_too_deep_has_none() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    assert openai_strict_schema(schema) is None


def test_what_has_too_many_properties_has_none() -> None:
    whole = {"type": "object", "properties": {str(n): {"type": "string"} for n in range(5001)}}
    assert openai_strict_schema(whole) is None
    assert openai_strict_schema({**whole, "properties": {"0": {"type": "string"}}}) is not None


def test_limits_that_are_supported_stay_and_others_are_reported() -> None:
    part = {"type": "string", "pattern": "^a", "minLength": 2, "format": "date", "examples": ["a"]}
    made = openai_strict_schema({"type": "object", "properties": {"x": part}, "required": ["x"]})
    assert made is not None
    assert made["properties"]["x"] == {
        "description": "minLength: 2",
        "type": "string",
        "pattern": "^a",
        "format": "date",
    }
