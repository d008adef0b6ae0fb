"""What a request asks for, setting by setting."""

from __future__ import annotations

from typing import Any

import pytest

from locus.core.frozen import freeze
from locus.core.messages import Message, Role
from locus.models.protocol import ModelRequest, ModelSettings, OutputSpec
from locus.tools.definition import ToolSpec
from locus_plugin_anthropic.body import body_of
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_wire.errors import RequestRefused

LOOK = ToolSpec(name="look", description="Looks.", parameters={"type": "object", "properties": {}})
HEAR = ToolSpec(name="hear", description=" ", parameters={"properties": {"what": {"type": "string"}}})
CITY = OutputSpec(
    name="city",
    schema={"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
)
HERE = {"base_url": "http://127.0.0.1:8080"}


def _body(
    tools: tuple[ToolSpec, ...] = (),
    output: OutputSpec | None = None,
    model: str = "claude-sonnet-5-5",
    own: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    asked = (Message(Role.USER, "Hi."),)
    request = ModelRequest(messages=asked, tools=tools, output=output, settings=ModelSettings(**settings))
    mine = AnthropicSettings(**{"cache": "off", **(own or {})})
    return body_of(request, model, mine)[0]


def test_plain_request_says_no_more_than_it_must() -> None:
    assert _body() == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 32_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
    }


def test_tools_are_sent_in_their_order() -> None:
    assert _body((LOOK, HEAR))["tools"] == [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}},
        {"name": "hear", "input_schema": {"type": "object", "properties": {"what": {"type": "string"}}}},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", None),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("hear", {"type": "tool", "name": "hear"}),
    ],
)
def test_tool_choice(choice: str | None, sent: Any) -> None:
    assert _body((LOOK, HEAR), tool_choice=choice).get("tool_choice") == sent


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        ("hear", {"type": "tool", "name": "hear", "disable_parallel_tool_use": True}),
    ],
)
def test_parallel_calls_can_be_turned_off(choice: str | None, sent: Any) -> None:
    assert _body((LOOK, HEAR), own={"parallel_tools": False}, tool_choice=choice)["tool_choice"] == sent


@pytest.mark.parametrize("choice", [None, "auto", "none", "required", "look"])
def test_without_tools_no_choice_is_sent(choice: str | None) -> None:
    # A plugin's own question takes over the run's settings, and has no tools.
    assert "tool_choice" not in _body(own={"parallel_tools": False}, tool_choice=choice)


def test_choice_of_a_tool_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(RequestRefused, match="look, hear, got 'see'") as caught:
        _body((LOOK, HEAR), tool_choice="see")
    assert not caught.value.retryable


def test_limit_temperature_and_stops() -> None:
    body = _body(own=HERE, max_tokens=5, temperature=0.0, stop=("END", "\n\n"), seed=1)
    assert body["max_tokens"] == 5
    assert body["temperature"] == 0.0
    assert body["stop_sequences"] == ["END"]  # the API refuses one of nothing but white space
    assert "seed" not in body


@pytest.mark.parametrize(
    ("own", "sent"),
    [
        ({}, False),
        ({"version": "2023-06-01"}, True),
        (HERE, True),
        ({**HERE, "version": "2026-10-21"}, False),
        ({**HERE, "thinking": 2048}, False),
    ],
    ids=["newest version", "older version", "another server", "there by choice", "with a budget for thinking"],
)
def test_temperature_is_sent_where_it_is_taken(own: dict[str, Any], *, sent: bool) -> None:
    assert ("temperature" in _body(own=own, temperature=0.5)) is sent


@pytest.mark.parametrize(
    ("thinking", "limit", "sent"),
    [
        ("adaptive", None, {"type": "adaptive"}),
        ("between_tools", None, {"type": "between_tools"}),
        ("disabled", None, {"type": "disabled"}),
        (2048, None, {"type": "enabled", "budget_tokens": 2048}),
        (2048, 2000, {"type": "enabled", "budget_tokens": 1999}),
        (2048, 1024, None),
        (2048, 50, None),
        (None, None, None),
    ],
)
def test_thinking(thinking: Any, limit: int | None, sent: Any) -> None:
    assert _body(own={"thinking": thinking}, max_tokens=limit).get("thinking") == sent


def test_tool_cannot_be_forced_while_thinking_with_a_budget() -> None:
    with pytest.raises(RequestRefused, match="thinking='adaptive'"):
        _body((LOOK,), own={"thinking": 2048}, tool_choice="required")
    assert _body((LOOK,), own={"thinking": "adaptive"}, tool_choice="required")["tool_choice"] == {"type": "any"}


def test_extras_are_passed_on() -> None:
    search = {"type": "web_search_20260318", "name": "web_search"}
    extras = {
        "top_k": 5,
        "metadata": {"user_id": "u"},
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "low"},
        "tools": [search],
        "messages": "no",
        "stream": False,
    }
    body = _body((LOOK,), CITY, own={"thinking": 2048, "effort": "max"}, extras=extras)
    assert body["top_k"] == 5
    assert body["metadata"] == {"user_id": "u"}
    assert body["thinking"] == {"type": "adaptive", "display": "omitted"}
    assert body["output_config"]["effort"] == "low"
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert body["tools"][1] == search
    assert body["messages"][0]["role"] == "user"
    assert "stream" not in body


def test_choice_in_extras_is_kept() -> None:
    extras = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    assert _body((LOOK,), tool_choice="required", extras=extras)["tool_choice"] == extras["tool_choice"]


def test_effort_is_a_setting() -> None:
    assert _body(own={"effort": "low"})["output_config"] == {"effort": "low"}


# -- structured output ---------------------------------------------------------------------------------


def test_newer_model_is_held_to_the_schema_itself() -> None:
    body = _body((LOOK,), CITY)
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {**CITY.schema, "required": []}}}
    assert [tool["name"] for tool in body["tools"]] == ["look"]
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("model", "native"),
    [
        ("claude-3-5-haiku-latest", False),
        ("claude-3-7-sonnet-20250219", False),
        ("claude-opus-4-20250514", False),
        ("claude-sonnet-4-0", False),
        ("claude-opus-4-1-20250805", False),
        ("claude-opus-4-1", False),
        ("claude-haiku-4-5-20251001", True),
        ("claude-sonnet-4-5", True),
        ("claude-opus-4-7", True),
        ("claude-opus-5", True),
        ("claude-fable-5-1", True),
    ],
)
def test_older_models_answer_by_a_tool(model: str, *, native: bool) -> None:
    body = _body(output=CITY, model=model)
    assert ("output_config" in body) is native
    assert ("tools" in body) is not native


def test_way_can_be_set() -> None:
    assert "tools" in _body(output=CITY, own={"structured": "tool"})
    assert "output_config" in _body(output=CITY, own={**HERE, "structured": "native"})
    assert "tools" in _body(output=CITY, own=HERE)


_NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": _NODE}},
    ],
    ids=["free keys", "recursion"],
)
def test_schema_without_a_native_form_becomes_a_tool(schema: dict[str, Any]) -> None:
    body = _body(output=OutputSpec(name="x", schema=schema))
    assert body["tools"][0]["input_schema"] == freeze(schema)


@pytest.mark.parametrize(
    ("tools", "own", "choice", "sent"),
    [
        ((), {}, None, {"type": "tool", "name": "final_answer"}),
        ((LOOK,), {}, None, {"type": "any"}),
        ((LOOK,), {}, "required", {"type": "any"}),
        ((LOOK,), {}, "look", {"type": "tool", "name": "look"}),
        ((LOOK,), {}, "none", {"type": "tool", "name": "final_answer"}),
        ((LOOK,), {"thinking": 2048}, None, None),
    ],
)
def test_tool_for_the_answer_is_forced(tools: Any, own: dict[str, Any], choice: str | None, sent: Any) -> None:
    body = _body(tools, CITY, own={"structured": "tool", **own}, tool_choice=choice)
    assert body["tools"][-1]["name"] == "final_answer"
    assert body.get("tool_choice") == sent


@pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
def test_question_without_tools_forces_its_answer_whatever_was_chosen_for_the_run(choice: str) -> None:
    body = _body(output=CITY, own={"structured": "tool"}, tool_choice=choice)
    assert body["tool_choice"] == {"type": "tool", "name": "final_answer"}
    thinking = _body(output=CITY, own={"structured": "tool", "thinking": 2048}, tool_choice=choice)
    assert "tool_choice" not in thinking


def test_schema_is_sent_in_the_form_that_the_api_takes() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "at": {"type": "string", "format": "date"},
            "of": {"type": "string", "format": "iri"},
        },
        "required": ["n"],
    }
    sent = _body(output=OutputSpec(name="x", schema=schema))["output_config"]["format"]["schema"]
    assert sent == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "minimum: 1"},
            "at": {"type": "string", "format": "date"},
            "of": {"type": "string", "description": 'format: "iri"'},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
