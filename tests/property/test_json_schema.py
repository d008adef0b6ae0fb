"""The checker agrees with the reference implementation, for schemas and data of every shape, and it always ends."""

from __future__ import annotations

import time
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus import schema
from locus.schema import Problem, ValidationError, find_problems, normalise

NAMES = ["a", "b", "cc"]
names = st.sampled_from(NAMES)
small = st.integers(0, 3)
atoms = st.none() | st.booleans() | st.integers(-2, 4) | st.sampled_from([0.5, 1.5, "", "a", "b", "cc", "abc"])
values = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
KINDS = ["string", "integer", "number", "boolean", "null", "array", "object"]

assertions: dict[str, Any] = {
    "type": st.sampled_from(KINDS) | st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
    "const": values,
    "enum": st.lists(values, min_size=1, max_size=3),
    "minimum": small,
    "maximum": small,
    "exclusiveMinimum": small,
    "exclusiveMaximum": small,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": small,
    "maxLength": small,
    "pattern": st.sampled_from(["^a", "b$", "c+", "^$"]),
    "minItems": small,
    "maxItems": small,
    "uniqueItems": st.booleans(),
    "minProperties": small,
    "maxProperties": small,
    "required": st.lists(names, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=1),
    "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
}


def applicators(inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    listed, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(names, inner, max_size=2)
    return {
        "allOf": listed,
        "anyOf": listed,
        "oneOf": listed,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "prefixItems": listed,
        "items": inner,
        "contains": inner,
        "properties": named,
        "additionalProperties": inner,
        "propertyNames": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b", "c$"]), inner, max_size=2),
    }


def with_some(keywords: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A schema with a few of these keywords, each combination as likely as another."""
    chosen = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=3, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: keywords[key] for key in keys}))


def schemas(keywords: dict[str, Any]) -> st.SearchStrategy[Any]:
    leaves = st.booleans() | with_some(keywords)
    return st.recursive(leaves, lambda inner: with_some({**keywords, **applicators(inner)}), max_leaves=5)


UNREFERRING = {key: each for key, each in assertions.items() if key != "$ref"}
documents = st.builds(
    lambda root, one, two: {**root, "$defs": {"one": one, "two": two}},
    with_some({**assertions, **applicators(schemas(assertions))}),
    schemas(UNREFERRING),
    schemas(UNREFERRING),
)


@given(documents, st.lists(values, min_size=1, max_size=5))
def test_what_the_reference_implementation_accepts_is_accepted_and_nothing_else(document: Any, data: list[Any]) -> None:
    reference = jsonschema.Draft202012Validator(document)
    for each in data:
        found = find_problems(document, each)
        assert bool(found) is not reference.is_valid(each), (found, each)


def checked(adapter: schema.JsonSchemaAdapter, data: Any) -> tuple[Any, tuple[Problem, ...]]:
    try:
        return adapter.check(data), ()
    except ValidationError as e:
        return None, e.problems


@given(documents, values)
def test_an_adapter_gives_what_fits_or_says_where_it_does_not(document: Any, data: Any) -> None:
    found, problems = checked(schema.of_json_schema(document), data)

    meant = normalise(document, data)
    assert bool(problems) is not jsonschema.Draft202012Validator(document).is_valid(meant)
    assert len(problems) <= 20
    assert all(problem.path.startswith("$") for problem in problems)
    assert problems or found == meant


BOMBS: dict[str, tuple[dict[str, Any], Any]] = {
    "each names the next twice": (
        {
            "allOf": [{"$ref": "#/$defs/0"}],
            "$defs": {
                **{str(i): {"allOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2} for i in range(60)},
                "60": {"type": "object"},
            },
        },
        {},
    ),
    "holds itself in alternatives": ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
    "refers to itself": ({"$ref": "#"}, 1),
    "deep data": ({"additionalProperties": {"$ref": "#"}}, None),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_schema_and_no_data_keep_the_checker_busy(name: str) -> None:
    document, data = BOMBS[name]
    for _ in range(100_000 if data is None else 0):
        data = {"a": data}
    adapter, began = schema.of_json_schema(document), time.process_time()

    _, problems = checked(adapter, data)

    assert time.process_time() - began < 20
    assert bool(problems) is (name != "refers to itself")


def test_a_reference_out_of_a_schema_is_refused_and_never_fetched() -> None:
    with pytest.raises(schema.InvalidSchema, match=r"refers to 'http://127\.0\.0\.1:9/x\.json', which is not in it"):
        schema.of_json_schema({"$ref": "http://127.0.0.1:9/x.json"})
