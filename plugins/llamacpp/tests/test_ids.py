"""Ids are those of the conversation: what a tool may be called with, and when it is on offer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.messages import Message, Role, ToolCall, ToolResult
from locus.models import ModelRequest, ModelSettings
from locus.tools import ToolSpec
from locus_plugin_llamacpp.turns import Turn, is_repeat, plan, read, without


def spec(name: str, description: str, /, optional: tuple[str, ...] = (), **parameters: Any) -> ToolSpec:
    properties = {each: {"type": "string"} if schema is str else schema for each, schema in parameters.items()}
    required = [each for each in parameters if each not in optional]
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name=name, description=description, parameters=schema)


FIND = spec("find_customer", "Find a customer by name.", name=str)
ORDERS = spec("list_orders", "List the orders of a customer.", customer_id=str)
CANCEL = spec("cancel_order", "Cancel one order.", order_id=str)
TRACK = spec("track_parcel", "Say where a parcel is.", parcel_id=str)
TOOLS = (FIND, ORDERS, CANCEL, TRACK)

ANN = '{"customer_id": "C-17", "name": "Ann", "since": 2019}'
TWO_ORDERS = '[{"order_id": "O-1", "item": "lamp"}, {"order_id": "O-2", "item": "desk"}]'


def conversation(text: str, *results: str) -> tuple[Message, ...]:
    messages = [Message(Role.USER, text)]
    for number, result in enumerate(results, 1):
        call = ToolCall(f"call_{number}", "find_customer", {"name": f"number {number}"})
        messages += [Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (ToolResult(call.id, result),))]
    return tuple(messages)


def turn_after(text: str, *results: str, tools: tuple[ToolSpec, ...] = TOOLS, choice: str | None = None) -> Turn:
    settings = ModelSettings(tool_choice=choice)
    return plan(ModelRequest(messages=conversation(text, *results), tools=tools, settings=settings))


def ids(turn: Turn) -> dict[str, Any]:
    """The tools on offer, each with what its id may be: None = any text, "" = it takes none."""
    found: dict[str, Any] = {}
    for tool in turn.tools:
        schemas = [schema for name, schema in tool.properties.items() if name.lower().endswith("id")]
        found[tool.name] = list(schemas[0].get("enum", ())) or None if schemas else ""
    return found


def test_what_takes_an_id_that_can_be_looked_up_waits_until_there_is_one() -> None:
    assert ids(turn_after("Cancel the lamp of Ann.")) == {"find_customer": "", "track_parcel": None}


def test_an_id_of_a_result_is_what_may_be_written_where_its_name_is_asked_for() -> None:
    assert ids(turn_after("Cancel the lamp of Ann.", ANN))["list_orders"] == ["C-17"]
    assert ids(turn_after("Cancel the lamp of Ann.", ANN, TWO_ORDERS)) == {
        "find_customer": "",
        "list_orders": ["C-17"],
        "cancel_order": ["O-1", "O-2"],
        "track_parcel": None,
    }


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Cancel O-77, please.", ["O-77"]),
        ("Cancel (order) 4711.", ["4711"]),
        ("Cancel blue_desk or ab12!", ["blue_desk", "ab12"]),
        ("Cancel 'ops@example.org'.", ["ops@example.org"]),
    ],
)
def test_an_id_that_the_user_names_may_be_written(said: str, expected: list[str]) -> None:
    assert ids(turn_after(said))["cancel_order"] == expected


def test_ids_are_found_in_results_of_any_form() -> None:
    assert ids(turn_after("Ann?", "Ann is customer C-17."))["list_orders"] == ["C-17"]
    assert ids(turn_after("Ann?", '{"found": [{"id": 4711}]}'))["list_orders"] == ["4711"]
    assert ids(turn_after("Ann?", '{"customerId": "ann"}'))["list_orders"] == ["ann"]
    assert ids(turn_after("Ann?", '{"number": "C-17", "name": "Ann"}'))["list_orders"] == ["C-17"]


def test_an_id_that_no_tool_knows_is_free_until_a_result_has_one() -> None:
    assert ids(turn_after("Where is the blue parcel?"))["track_parcel"] is None
    assert ids(turn_after("Where is it?", '{"parcel_id": "P-1"}'))["track_parcel"] == ["P-1"]


def test_what_a_tool_says_of_its_id_itself_holds() -> None:
    own = spec("list_orders", "List the orders of a customer.", customer_id={"type": "string", "enum": ["a", "b"]})
    number = spec("cancel_order", "Cancel one order.", order_id={"type": "integer"})

    turn = turn_after("Hello", tools=(FIND, own, number))

    assert ids(turn) == {"find_customer": "", "list_orders": ["a", "b"], "cancel_order": None}


def test_a_tool_whose_id_may_be_left_out_stays_on_offer() -> None:
    optional = spec("list_orders", "List orders.", optional=("customer_id",), customer_id=str)

    assert ids(turn_after("Hello", tools=(FIND, optional))) == {"find_customer": "", "list_orders": None}


def test_what_must_be_called_can_be_called() -> None:
    assert ids(turn_after("Ann", tools=TOOLS, choice="list_orders")) == {"list_orders": None}
    assert turn_after("Ann", tools=(CANCEL, ORDERS), choice="required").tools


def test_more_ids_than_a_grammar_can_hold_are_not_listed() -> None:
    many = json.dumps([{"order_id": f"O-{number}"} for number in range(500)])

    assert ids(turn_after("Cancel the last one.", many))["cancel_order"] is None


def test_a_repeated_call_leaves_the_other_ids() -> None:
    call = ToolCall("call_1", "cancel_order", {"order_id": "O-1"})
    made = (Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (ToolResult("call_1", "done"),)))
    turn = plan(ModelRequest(messages=(*conversation("Cancel O-1 and O-2."), *made), tools=TOOLS))
    again = read(turn, '{"tool": "cancel_order", "args": {"order_id": "O-1"}}')
    assert again.call is not None
    assert is_repeat(turn, again)

    assert ids(without(turn, again.call))["cancel_order"] == ["O-2"]
    assert "cancel_order" not in ids(
        without(without(turn, again.call), ToolCall("x", "cancel_order", {"order_id": "O-2"}))
    )


def test_without_the_guard_any_text_may_be_written() -> None:
    turn = plan(ModelRequest(messages=conversation("Ann"), tools=TOOLS), id_guard=False)

    assert ids(turn) == {"find_customer": "", "list_orders": None, "cancel_order": None, "track_parcel": None}


@given(st.text(max_size=60), st.lists(st.one_of(st.text(max_size=40), st.sampled_from([ANN, TWO_ORDERS])), max_size=3))
def test_an_id_that_may_be_written_was_said_and_the_prompt_does_not_change(said: str, results: list[str]) -> None:
    messages = conversation(said, *results)
    turn = plan(ModelRequest(messages=messages, tools=TOOLS))
    heard = " ".join([said, *results])

    for allowed in ids(turn).values():
        assert all(value in heard for value in allowed or ())
    assert turn.messages == plan(ModelRequest(messages=messages, tools=TOOLS), id_guard=False).messages
    assert {tool.name for tool in turn.tools} <= {tool.name for tool in TOOLS}
