"""The schema of a turn admits a call of an offered tool or the answer, and nothing else."""

from __future__ import annotations

from typing import Any

from locus.tools.definition import ToolSpec
from locus_plugin_llamacpp.schema import answer_schema, turn_schema


def tool(name: str, parameters: dict[str, Any]) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=parameters)


LOOK = tool("look", {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]})


def test_each_tool_and_the_answer_is_one_alternative_with_the_name_first() -> None:
    made = turn_schema([LOOK], "done")

    assert [each["properties"]["tool"]["const"] for each in made["anyOf"]] == ["look", "done"]
    assert all(list(each["properties"]) == ["tool", "args"] for each in made["anyOf"])
    assert made["anyOf"][1]["properties"]["args"]["properties"] == {"answer": {"type": "string"}}


def test_without_a_final_name_only_tools_are_admitted() -> None:
    assert [each["properties"]["tool"]["const"] for each in turn_schema([LOOK], None)["anyOf"]] == ["look"]


def test_arguments_that_the_tool_does_not_name_are_excluded_unless_it_admits_them() -> None:
    open_tool = tool("open", {"type": "object", "additionalProperties": {"type": "integer"}})
    closed, opened = (
        each["properties"]["args"]["additionalProperties"] for each in turn_schema([LOOK, open_tool], None)["anyOf"]
    )

    assert closed is False
    assert opened == {"type": "integer"}


def test_definitions_move_to_the_root_without_meeting_those_of_another_tool() -> None:
    def with_point(kind: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "p": {"$ref": "#/$defs/Point"},
                "more": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
            },
            "$defs": {"Point": {"type": kind}},
        }

    made = turn_schema([tool("a", with_point("string")), tool("b", with_point("integer"))], None)

    assert made["$defs"] == {"a.Point": {"type": "string"}, "b.Point": {"type": "integer"}}
    first = made["anyOf"][0]["properties"]["args"]
    assert first["properties"]["p"] == {"$ref": "#/$defs/a.Point"}
    assert first["properties"]["more"]["items"] == {"$ref": "#/$defs/a.Point"}
    assert "$defs" not in first


def test_a_schema_that_refers_to_itself_still_does() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}

    made = answer_schema(tree)

    assert made["properties"]["children"]["items"] == {"$ref": "#/$defs/answer."}
    assert made["$defs"]["answer."]["properties"] == made["properties"]


def test_a_parameter_may_be_called_like_a_keyword() -> None:
    odd = tool("odd", {"type": "object", "properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}})

    made = turn_schema([odd], None)

    assert list(made["anyOf"][0]["properties"]["args"]["properties"]) == ["pattern", "$ref"]


def test_values_are_copied_as_they_are() -> None:
    constant = {"$ref": "#/$defs/no", "pattern": "x"}
    made = turn_schema([tool("t", {"type": "object", "properties": {"x": {"const": constant}}})], None)

    assert made["anyOf"][0]["properties"]["args"]["properties"]["x"] == {"const": constant}


def test_patterns_that_llama_cpp_would_warn_about_are_left_out() -> None:
    patterns = {"kept": "^[a-z]{2}$", "open": "abc", "class": "^\\d+$", "ahead": "^(?=x)y$"}
    properties = {name: {"type": "string", "pattern": pattern} for name, pattern in patterns.items()}

    made = turn_schema([tool("t", {"type": "object", "properties": properties})], None)

    found = made["anyOf"][0]["properties"]["args"]["properties"]
    assert [name for name in patterns if "pattern" in found[name]] == ["kept"]
