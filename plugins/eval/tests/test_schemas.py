"""Schemas of the check `schema`: what would not be checked is refused, and what is not refused is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from locus_plugin_eval import InvalidCases, read_cases
from locus_plugin_eval.checks import Subject, ValidJson


def read(tmp_path: Path, schema: Any) -> ValidJson:
    path = tmp_path / "desk.eval.yaml"  # JSON is YAML
    path.write_text(json.dumps({"cases": [{"id": "a", "prompt": "x", "checks": [{"schema": schema}]}]}))
    (check,) = read_cases(path).cases[0].checks
    assert isinstance(check, ValidJson)
    return check


def problems(tmp_path: Path, schema: Any) -> list[str]:
    with pytest.raises(InvalidCases) as caught:
        read(tmp_path, schema)
    start = "case 'a': checks[0].schema"
    assert all(each.startswith(start) for each in caught.value.problems)
    return [each.removeprefix(start) for each in caught.value.problems]


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"typ": "string"}, ": the keyword 'typ' is not checked here, so it would always pass; did you mean 'type'?"),
        ({"minlength": 5}, "did you mean 'minLength'?"),
        ({"additional_properties": False}, "did you mean 'additionalProperties'?"),
        ({"properties": {"a": {"maximun": 3}}}, ".properties.a: the keyword 'maximun' is not checked here"),
        ({"items": {"anyOf": [{"typ": "string"}]}}, ".items.anyOf[0]: the keyword 'typ'"),
        ({"$defs": {"a": {"typ": "string"}}}, ".$defs.a: the keyword 'typ'"),
        ({"definitions": {"a": {"typ": "string"}}}, ".definitions.a: the keyword 'typ'"),
        ({"type": "string", "format": "date"}, "the keyword 'format' is not checked here"),
        ({"$anchor": "q"}, "the keyword '$anchor'"),
        ({"dependencies": {"a": ["b"]}}, "the keyword 'dependencies'"),
        ({"dependentSchemas": {"a": {}}}, "the keyword 'dependentSchemas'"),
        ({"items": [True], "additionalItems": False}, "the keyword 'additionalItems'"),
        ({"items": [{"type": "string"}]}, ".items: expected one schema, for each item; a list of schemas is called"),
        ({"unevaluatedProperties": False}, "the keyword 'unevaluatedProperties'"),
        ({"$dynamicRef": "#a"}, "the keyword '$dynamicRef'"),
        ({"contentEncoding": "base64"}, "the keyword 'contentEncoding'"),
        ({"nullable": True}, "the keyword 'nullable'"),
        ({"then": {"required": ["a"]}}, ".then: expected 'if' beside it"),
        ({"minContains": 2}, ".minContains: expected 'contains' beside it"),
    ],
)
def test_a_keyword_that_is_not_checked_is_refused(tmp_path: Path, schema: Any, hint: str) -> None:
    assert any(hint in each for each in problems(tmp_path, schema))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, ".type: expected one of array, boolean, integer, null, number, object, string, or a list"),
        ({"type": []}, ".type: expected one of"),
        ({"type": ["string", 3]}, ".type: expected one of"),
        ({"required": "a"}, ".required: expected a list of names, got 'a'"),
        ({"required": True}, ".required: expected a list of names"),
        ({"properties": {"a": {"minimum": "x"}}}, ".properties.a.minimum: expected a number, got 'x'"),
        ({"exclusiveMinimum": True}, ".exclusiveMinimum: expected a number, got True"),
        ({"multipleOf": 0}, ".multipleOf: expected a number above 0"),
        ({"minLength": -1}, ".minLength: expected a whole number, 0 or more"),
        ({"maxItems": 1.5}, ".maxItems: expected a whole number"),
        ({"uniqueItems": "yes"}, ".uniqueItems: expected true or false"),
        ({"enum": "a"}, ".enum: expected a list of values"),
        ({"pattern": 5}, ".pattern: expected a pattern, got 5"),
        ({"pattern": "(?=x)"}, ".pattern: the pattern '(?=x)' is refused"),
        ({"patternProperties": {"(?=x)": {}}}, ".patternProperties: the pattern '(?=x)' is refused"),
        ({"properties": ["a"]}, ".properties: expected schemas by name, got ['a']"),
        ({"properties": {"a": 5}}, ".properties.a: expected a JSON Schema, such as {type: object}, got 5"),
        ({"anyOf": []}, ".anyOf: expected a list of schemas, got []"),
        ({"allOf": {"type": "string"}}, ".allOf: expected a list of schemas"),
        ({"not": "string"}, ".not: expected a JSON Schema"),
        ({"dependentRequired": {"a": "b"}}, ".dependentRequired: expected lists of names by name"),
    ],
)
def test_a_value_that_a_keyword_cannot_have_is_refused(tmp_path: Path, schema: Any, said: str) -> None:
    (found,) = problems(tmp_path, schema)
    assert found.startswith(said)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/x"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#q", "$defs": {"q": {"type": "string"}}},
        {"$id": "http://x/s", "$defs": {"q": {}}, "$ref": "http://x/s#/$defs/q"},
        {"items": {"$ref": "#/required"}, "required": ["a"]},
        {"items": {"$ref": "#/allOf/0"}, "allOf": [{"type": "array"}]},
        {"items": {"$ref": "#/default"}, "default": {"typ": "string"}},
        {"properties": {"a": {"$ref": "#/properties"}}},
        {"items": {"$ref": 5}},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "items": {"$ref": "#/$defs/a"}},
        {"$defs": {"a": {"$ref": "#/$defs/b", "minLength": 5}, "b": {}}, "items": {"$ref": "#/$defs/a"}},
    ],
)
def test_a_reference_that_the_checker_does_not_follow_is_refused(tmp_path: Path, schema: Any) -> None:
    assert all("$ref: " in each for each in problems(tmp_path, schema))


def test_all_faults_of_a_schema_are_said_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, {"typ": "object", "required": "a", "properties": {"b": {"type": "strin"}}})
    assert len(found) == 3
    assert len(problems(tmp_path, {"properties": {str(n): {"type": "strin"} for n in range(1_000)}})) == 20


#: A schema, and a value that does not fit it: of each keyword that is accepted.
CHECKED: list[tuple[dict[str, Any], Any]] = [
    ({"type": ["string", "null"]}, 1),
    ({"const": 1}, True),
    ({"enum": [[1]]}, [True]),
    ({"required": ["b"]}, {"a": 1}),
    ({"properties": {"a": False}}, {"a": 1}),
    ({"patternProperties": {"^a": {"type": "string"}}}, {"a": 1}),
    ({"additionalProperties": {"type": "string"}}, {"a": 1}),
    ({"propertyNames": {"pattern": "^b"}}, {"a": 1}),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ({"minProperties": 2}, {"a": 1}),
    ({"maxProperties": 0}, {"a": 1}),
    ({"prefixItems": [{"type": "string"}]}, [1]),
    ({"prefixItems": [True], "items": False}, [1, 2]),
    ({"minItems": 2}, [1]),
    ({"maxItems": 1}, [1, 2]),
    ({"uniqueItems": True}, [1, 1]),
    ({"contains": {"type": "number"}, "minContains": 2}, [1]),
    ({"contains": {"type": "number"}, "maxContains": 1}, [1, 2]),
    ({"minLength": 2}, "a"),
    ({"maxLength": 1}, "ab"),
    ({"pattern": "^b"}, "a"),
    ({"minimum": 2}, 1),
    ({"maximum": 2}, 3),
    ({"exclusiveMinimum": 1}, 1),
    ({"exclusiveMaximum": 1}, 1),
    ({"multipleOf": 2}, 3),
    ({"anyOf": [{"type": "string"}]}, 1),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 1),
    ({"allOf": [{"type": "string"}]}, 1),
    ({"not": {"type": "object"}}, {}),
    ({"if": {"type": "object"}, "then": {"required": ["b"]}, "else": False}, {"a": 1}),
    ({"$defs": {"q": {"type": "string"}}, "$ref": "#/$defs/q"}, 1),
    ({"definitions": {"q/~": {"type": "string"}}, "$ref": "#/definitions/q~1~0"}, 1),
    ({"type": "object", "properties": {"a": {"$ref": "#"}}}, {"a": {"a": 1}}),
]


@pytest.mark.parametrize(("schema", "value"), CHECKED)
def test_a_keyword_that_is_accepted_is_checked(tmp_path: Path, schema: Any, value: Any) -> None:
    described = {
        **schema,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/s",
        **dict.fromkeys(("title", "description", "$comment"), "words"),
        "default": {"typ": 1},
        "examples": [{"typ": 1}],
        "deprecated": True,
        "readOnly": True,
        "x-own": 1,
    }
    assert read(tmp_path, described).find_fault(Subject(text=json.dumps(value)))


def test_a_date_in_a_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "desk.eval.yaml"
    path.write_text("cases: [{id: a, prompt: x, checks: [{schema: {not: {const: 2030-05-01}}}]}]")
    with pytest.raises(InvalidCases, match=r"schema\.not\.const: expected a value of JSON \(in quotes, if it looks"):
        read_cases(path)


def test_an_answer_that_is_nested_too_deeply_does_not_end_an_evaluation(tmp_path: Path) -> None:
    deep = "[" * 900 + "]" * 900
    for schema in ({"enum": [1]}, {"const": 1}, {"items": {"uniqueItems": True}}):
        assert read(tmp_path, schema).find_fault(Subject(text=deep))
