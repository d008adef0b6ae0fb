"""Schemas in the form that strict modes take: closed, everything required, null for what is left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import date, datetime
from enum import Enum
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus.models.output import output_schema
from locus.schema.checking import find_problems, normalise
from locus.schema.jsonschema import subschemas
from locus_wire import NotStrict, StrictRules, strict_schema

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Box(Generic[T]):
    held: T


@attrs.frozen
class Node:
    value: int
    children: list[Node] = attrs.field(factory=list)


class Leg(TypedDict):
    to: str
    note: NotRequired[str]


class Limits(pydantic.BaseModel):
    size: int = pydantic.Field(ge=1, le=9, description="How large.")
    name: str = pydantic.Field(default="x", pattern="^[a-z]+$")


class Everything(msgspec.Struct):
    when: datetime
    day: date
    id: UUID
    colour: Colour
    legs: list[Leg]
    pair: tuple[int, str]
    either: int | list[str] | None
    node: Node
    box: Box[int]
    kind: Literal["a", 1, None]
    limits: Limits | None = None
    days: int = 3


TYPES = [Box[int], Node, Leg, Limits, Everything, list[Node], int | str, Colour]


def nodes(schema: Any) -> Iterator[Any]:
    yield schema
    for each in [*subschemas(schema), *schema.get("$defs", {}).values()]:
        yield from nodes(each)


def assert_strict(schema: dict[str, Any], rules: StrictRules) -> None:
    for node in nodes(schema):
        assert set(node) <= {
            "type", "enum", "anyOf", "$ref", "$defs", "description", "properties", "required", "additionalProperties",
            "items", "format", *rules.keywords,
        }  # fmt: skip
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert rules.optional or node["required"] == list(node["properties"])
        assert "$ref" not in node or set(node) == {"$ref"}
        assert isinstance(node.get("type", ""), str)


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize(
    "rules",
    [
        StrictRules(),
        StrictRules(keywords=frozenset({"minimum", "pattern"}), formats=frozenset({"date"}), optional=True),
    ],
    ids=["least", "more"],
)
def test_what_types_say_has_a_strict_form_which_is_its_own(source: Any, rules: StrictRules) -> None:
    schema = output_schema(source).spec.schema
    strict = strict_schema(schema, rules)
    assert_strict(strict, rules)
    assert strict_schema(strict, rules) == strict
    assert schema == output_schema(source).spec.schema, "the given one is left alone"


def test_what_is_optional_may_be_null_and_is_read_as_left_out() -> None:
    @dataclasses.dataclass
    class Trip:
        city: str
        days: int = 1
        note: str | None = "none"

    schema = output_schema(Trip)
    strict = strict_schema(schema.spec.schema)
    assert strict == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"description": "default: 1", "anyOf": [{"type": "integer"}, {"type": "null"}]},
            "note": {"description": 'default: "none"', "anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["city", "days", "note"],
        "additionalProperties": False,
    }
    assert schema.parse('{"city": "Ulm", "days": null, "note": null}') == Trip("Ulm", 1, None)


def test_constraints_are_kept_or_reported() -> None:
    schema = output_schema(Limits).spec.schema
    rules = StrictRules(keywords=frozenset({"minimum", "maximum", "pattern"}))
    assert strict_schema(schema, rules)["properties"] == {
        "size": {"type": "integer", "description": "How large.", "minimum": 1, "maximum": 9},
        "name": {"description": 'default: "x"', "anyOf": [{"type": "string", "pattern": "^[a-z]+$"}, {"type": "null"}]},
    }
    told = strict_schema(schema)["properties"]
    assert told["size"] == {"type": "integer", "description": "How large.; maximum: 9; minimum: 1"}
    assert '"^[a-z]+$"' in told["name"]["description"]


@pytest.mark.parametrize(
    ("schema", "path", "why"),
    [
        ({"type": "string"}, "$", "not that of an object"),
        ({"anyOf": [{"type": "object", "properties": {}}]}, "$", "not that of an object"),
        ({"type": "object"}, "$", "any keys"),
        ({"type": "object", "properties": {}, "additionalProperties": True}, "$", "any keys"),
        ({"a": {"type": "object", "additionalProperties": {"type": "integer"}}}, "$.a", "any keys"),
        ({"a": {}}, "$.a", "any type"),
        ({"a": True}, "$.a", "any value"),
        ({"a": False}, "$.a", "no value"),
        ({"a": {"type": "array"}}, "$.a[]", "any type"),
        ({"a": {"type": "array", "items": {"description": "x"}}}, "$.a[]", "any type"),
        ({"a": {"type": "array", "items": False}}, "$.a", "no item"),
        ({"a": {"enum": []}}, "$.a", "no value"),
        ({"a": {"const": {"b": 1}}}, "$.a", "an object"),
        ({"a": {"type": "integer", "not": {"const": 1}}}, "$.a", "'not'"),
        ({"a": {"allOf": [{"type": "integer"}, {"type": "number"}]}}, "$.a", "'allOf'"),
        ({"a": {"anyOf": [{"type": "object"}], "properties": {}}}, "$.a", "'anyOf'"),
        ({"a": {"$ref": "#/$defs/B"}}, "$.a", "not a definition"),
        ({"a": {"$ref": "other.json"}}, "$.a", "not a definition"),
        ({"type": "object", "properties": {}, "required": ["b"]}, "$", "'b' is required"),
    ],
)
def test_what_cannot_be_strict_is_reported_with_its_place(schema: dict[str, Any], path: str, why: str) -> None:
    whole = schema if {"type", "anyOf"} & set(schema) else {"type": "object", "properties": schema}
    with pytest.raises(NotStrict, match=why) as caught:
        strict_schema(whole)
    assert caught.value.path == path


def test_schemas_that_refer_to_themselves() -> None:
    strict = strict_schema(output_schema(Node).spec.schema)
    assert "#" in str(strict)
    with pytest.raises(NotStrict, match="refers to itself"):
        strict_schema(output_schema(Node).spec.schema, StrictRules(recursive=False))
    shared = {"a": {"$ref": "#/definitions/P"}, "b": {"$ref": "#/definitions/P", "description": "The second."}}
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    found = strict_schema(
        {"type": "object", "properties": shared, "required": ["a", "b"], "definitions": {"P": point}},
        StrictRules(recursive=False),
    )
    assert found["properties"] == {
        "a": {"$ref": "#/$defs/P"},
        "b": {"description": "The second.", "anyOf": [{"$ref": "#/$defs/P"}]},
    }
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(NotStrict, match="too deeply"):
        strict_schema({"type": "object", "properties": {"a": deep}})


def test_a_root_that_is_a_definition_of_its_own() -> None:
    tree = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}},
        "required": ["next"],
    }
    strict = strict_schema({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}})
    assert strict == {**tree, "additionalProperties": False, "properties": {
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    }}  # fmt: skip


# -- laws -----------------------------------------------------------------------------------------

scalars: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": "boolean", "default": True},
        {"type": ["string", "null"]},
        {"enum": ["a", 1, None]},
        {"const": "b"},
        {"type": "number", "description": "A number."},
    ]
)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def built(properties: dict[str, Any], needed: set[str]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name in needed],
            "additionalProperties": False,
        }

    names = st.sampled_from(["p", "q", "r", "type", "properties"])
    return st.builds(built, st.dictionaries(names, inner, max_size=3), st.sets(names))


def containers(schema: dict[str, Any]) -> list[str]:
    """The objects and arrays among the alternatives of a schema."""
    if "anyOf" in schema:
        return [kind for arm in schema["anyOf"] for kind in containers(arm)]
    return [schema["type"]] if schema.get("type") in ("object", "array") else []


def is_unambiguous(schema: dict[str, Any]) -> bool:
    """Whether the type of a value says which alternative it follows; if not, a null in it is not taken as left out."""
    found = containers(schema)
    return len(found) == len(set(found))


schemas = st.recursive(
    scalars,
    lambda inner: (
        objects(inner)
        | st.builds(lambda item: {"type": "array", "items": item}, inner)
        | st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner).filter(is_unambiguous)
    ),
    max_leaves=6,
)


@st.composite
def values(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """A value that follows a schema."""
    if "anyOf" in schema:
        return draw(values(draw(st.sampled_from(schema["anyOf"]))))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"] if isinstance(schema["type"], str) else draw(st.sampled_from(schema["type"]))
    if kind == "object":
        needed = schema["required"]
        named = schema["properties"].items()
        return {name: draw(values(each)) for name, each in named if name in needed or draw(st.booleans())}
    if kind == "array":
        return draw(st.lists(values(schema["items"]), max_size=2))
    plain: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(["", "a", "zebra"]), "integer": st.integers(0, 9), "boolean": st.booleans(),
        "null": st.none(), "number": st.sampled_from([0.5, 2]),
    }  # fmt: skip
    return draw(plain[kind])


def fill(schema: dict[str, Any], strict: dict[str, Any], value: Any) -> Any:
    """What a model that is held to the strict schema would write for a value: null for all that is left out."""
    if "anyOf" in schema:
        fitting = [each for each in schema["anyOf"] if not find_problems(each, value)]
        return fill(fitting[0], strict, value)
    if isinstance(value, dict):
        return {
            name: fill(each, strict, value[name]) if name in value else None
            for name, each in schema["properties"].items()
        }
    return [fill(schema["items"], strict, each) for each in value] if isinstance(value, list) else value


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, derandomize=True)
@given(objects(schemas), st.data())
def test_a_strict_schema_admits_what_the_first_one_does_and_what_it_admits_is_read_back(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    strict = strict_schema(schema)
    assert_strict(strict, StrictRules())
    assert strict_schema(strict) == strict
    value = data.draw(values(schema))
    assert not find_problems(schema, value)
    written = fill(schema, strict, value)
    assert not find_problems(strict, written)
    read = normalise(schema, written)
    assert not find_problems(schema, read)


@pytest.mark.parametrize(
    ("schema", "nullable"),
    [
        ({"allOf": [{"type": "integer"}]}, True),
        ({"$ref": "#/$defs/Size"}, True),
        ({"$ref": "#/$defs/MaybeSize"}, False),
        ({"enum": ["a", None]}, False),
        ({"type": ["integer", "null"]}, False),
    ],
)
def test_an_optional_property_becomes_nullable_unless_it_is(schema: dict[str, Any], nullable: bool) -> None:
    definitions = {"Size": {"type": "integer"}, "MaybeSize": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    whole = {"type": "object", "properties": {"it": schema}, "$defs": definitions}
    optional = strict_schema(whole)["properties"]["it"]
    required = strict_schema({**whole, "required": ["it"]})["properties"]["it"]
    assert (optional != required) is nullable
    assert not nullable or optional == {"anyOf": [required, {"type": "null"}]}
