"""Tools that another program describes: the schema is the model's, what is cheap to check is checked."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import ToolDefinitionError
from locus.core.frozen import freeze, thaw
from locus.tools import ArgumentError, Bound, ToolRegistry
from locus_kit.schematool import SchemaTool, schema_tool


async def echo(arguments: dict[str, Any], ctx: Any) -> Any:
    return arguments


def make_tool(schema: dict[str, Any], **options: Any) -> SchemaTool:
    return schema_tool(echo, **{"name": "far", "description": "d", "parameters": schema, "origin": "o", **options})


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tags": {"type": ["array", "null"]}, "any": {}, "s": {"type": "string"}},
    "required": ["n"],
    "additionalProperties": False,
}


def test_the_model_gets_the_schema_as_it_is() -> None:
    strange = {**SCHEMA, "$defs": {"x": {"$ref": "#"}}, "x-vendor": {"keep": [1, None, 2.5]}, "title": "T"}

    assert thaw(make_tool(strange).spec.parameters) == strange
    assert ToolRegistry(make_tool(strange)).specs[0].parameters == freeze(strange)


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        ({"n": 1}, {"n": 1}),
        ({"n": "1", "tags": '["a"]', "s": "1"}, {"n": 1, "tags": ["a"], "s": "1"}),
        ({"n": 1.0, "any": {"deep": [1, {"x": "3"}]}}, {"n": 1, "any": {"deep": [1, {"x": "3"}]}}),
        ({"n": 1, "tags": None, "s": None}, {"n": 1, "tags": None}),
    ],
)
def test_arguments_reach_the_body_as_one_dict_with_their_plain_types_put_right(
    arguments: dict[str, Any], bound: dict[str, Any]
) -> None:
    got = make_tool(SCHEMA).bind(freeze(arguments))

    assert isinstance(got, Bound)
    assert got.arguments == bound
    assert json.loads(json.dumps(got.arguments)) == bound


def test_the_body_may_change_its_arguments_and_finds_them_whole_when_it_is_entered_again() -> None:
    got = make_tool(SCHEMA).bind({"n": 1, "any": {"list": [1]}})
    assert isinstance(got, Bound)
    got.arguments["any"]["list"].append(2)

    assert got.arguments == {"n": 1, "any": {"list": [1]}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, r"\$\.n: missing"),
        ({"n": "x"}, r"\$\.n: expected integer, got string 'x'"),
        ({"n": 1, "tagz": []}, "did you mean 'tags'"),
        ({"n": 1, "tags": "a"}, "expected array or null"),
    ],
)
def test_what_is_plainly_wrong_is_refused_before_the_body(arguments: dict[str, Any], says: str) -> None:
    refused = make_tool(SCHEMA).bind(arguments)

    assert isinstance(refused, ArgumentError)
    assert re.search(says, str(refused))
    assert "Parameters: n (integer)" in str(refused)


@pytest.mark.parametrize("further", ["allOf", "anyOf", "patternProperties", "$ref", "if"])
def test_where_a_schema_says_more_elsewhere_unknown_names_are_left_to_its_author(further: str) -> None:
    tool = make_tool({**SCHEMA, further: {}})

    assert isinstance(tool.bind({"n": 1, "other": 2}), Bound)


def test_a_schema_built_to_keep_its_reader_busy_costs_nothing() -> None:
    wide = {"allOf": [{"$ref": "#"}] * 20, "anyOf": [{"$ref": "#"}] * 20}
    evil = {
        "type": "object",
        "properties": {"a": wide, "b": {"type": "string", "pattern": "(a+)+$"}, "c": {"$ref": "#/properties/c"}},
        **wide,
    }
    tool, began = make_tool(evil), time.process_time()
    for _ in range(100):
        assert isinstance(tool.bind({"a": {"x": 1}, "b": "a" * 100 + "!", "c": 1}), Bound)

    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"parameters": {"type": "array"}}, "must be the JSON Schema of an object"),
        ({"parameters": {"x": float("nan")}}, "not a JSON Schema"),
        ({"parameters": {"x": object()}}, "not a JSON Schema"),
        ({"parameters": {"x": "\ud800"}}, "not a JSON Schema"),
        ({"name": "a.b"}, "o: name must be"),
        ({"name": "x" * 65}, "o: name must be"),
        ({"effect": "maybe"}, "must be 'pure', 'keyed' or 'once'"),
    ],
)
def test_what_a_model_cannot_be_given_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolDefinitionError, match=says):
        make_tool(SCHEMA, **options)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(schema=st.dictionaries(st.sampled_from([*SCHEMA, "anyOf", "$ref", "enum"]), JSON), arguments=JSON)
def test_no_schema_and_no_arguments_raise_anything_but_the_refusal(schema: dict[str, Any], arguments: Any) -> None:
    try:
        tool = make_tool(schema)
    except ToolDefinitionError:
        return
    got = tool.bind(arguments if isinstance(arguments, dict) else {"n": arguments})

    again = make_tool(thaw(tool.spec.parameters)).bind(arguments if isinstance(arguments, dict) else {"n": arguments})
    assert type(got) is type(again)
    if isinstance(got, Bound) and isinstance(again, Bound):
        assert got.key == again.key
    assert isinstance(tool.usage, str)
