"""Arguments as models write them: checked before the body, explained in full, and one key for what means the same."""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from typing import Annotated, Any, Literal

import attrs
import msgspec
import pydantic
import pytest

from locus.core.frozen import freeze
from locus.tools import ArgumentError, Bound, Tool, call_key, tool


@tool
def book(
    room: str, nights: int = 1, price: float = 80.0, breakfast: bool = False, notes: list[str] | None = None
) -> Any:
    """Book a room."""
    return room, nights, price, breakfast, notes


def bound(made: Tool[..., Any], arguments: Any) -> Bound:
    outcome = made.bind(freeze(arguments))
    assert isinstance(outcome, Bound), str(outcome)
    return outcome


def key(made: Tool[..., Any], arguments: Any) -> str:
    return bound(made, arguments).key


def problems(made: Tool[..., Any], arguments: Any) -> list[str]:
    outcome = made.bind(freeze(arguments))
    assert isinstance(outcome, ArgumentError)
    return [str(problem) for problem in outcome.problems]


# --- what is refused -------------------------------------------------------------------------------


def test_every_fault_is_reported_at_once() -> None:
    found = problems(book, {"rom": "12a", "nights": "many", "notes": [1, "a", None], "breakfast": {}})

    assert found == [
        "$.rom: unknown parameter, did you mean 'room'?",
        "$.nights: expected integer, got string 'many'",
        "$.notes[0]: expected string, got integer 1",
        "$.notes[2]: expected string, got null",
        "$.breakfast: expected boolean, got object {}",
        "$.room: missing; expected string",
    ]


def test_the_text_for_the_model_names_the_tool_and_its_parameters() -> None:
    outcome = book.bind({"room": 3})

    assert str(outcome).startswith(
        "the arguments of book are wrong: $.room: expected string, got integer 3. Parameters:"
    )
    assert "room (string), nights (integer, optional)" in str(outcome)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Room", "did you mean 'room'?"),
        ("number_of_nights", "did you mean 'nights'?"),
        ("break_fast", "did you mean 'breakfast'?"),
        ("xyz", "known: room, nights, price, breakfast, notes"),
    ],
)
def test_an_unknown_parameter_gets_the_closest_name(name: str, hint: str) -> None:
    assert hint in problems(book, {"room": "1", name: 1})[0]


def test_the_choices_are_listed() -> None:
    @tool
    def paint(colour: Literal["red", "blue"]) -> None:
        """Paint."""

    assert problems(paint, {"colour": "green"}) == ["$.colour: expected one of 'blue', 'red', got string 'green'"]


def test_what_only_the_type_knows_is_reported_beside_the_rest() -> None:
    @attrs.frozen
    class Stay:
        nights: int = attrs.field(validator=attrs.validators.gt(0))

    @tool
    def extend(stay: Stay, room: str) -> None:
        """Extend a stay."""

    assert problems(extend, {"stay": {"nights": 0}, "room": 3}) == [
        "$.room: expected string, got integer 3",
        "$.stay: 'nights' must be > 0: 0",
    ]


@pytest.mark.parametrize("arguments", [[], (), "room", 3, None])
def test_what_is_not_an_object_is_refused(arguments: Any) -> None:
    assert problems(book, arguments)[0].startswith("$: expected object, got")


def test_a_flood_of_faults_is_cut() -> None:
    outcome = book.bind({"room": 1, "notes": [{"x" * 10_000: 1}] * 10_000, "y" * 100_000: 1})

    assert isinstance(outcome, ArgumentError)
    assert len(str(outcome)) < 6_000


def test_arguments_nested_without_end_are_refused() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]

    assert isinstance(book.bind({"room": "1", "notes": deep}), ArgumentError)


def test_a_class_that_fails_in_its_own_way_does_not_fail_the_call() -> None:
    @attrs.frozen
    class Broken:
        size: int = attrs.field()

        @size.validator
        def _check(self, attribute: Any, value: int) -> None:
            raise KeyError("boom")

    @tool
    def use(it: Broken) -> None:
        """Use."""

    assert problems(use, {"it": {"size": 1}}) == ["$.it: 'boom'"]


# --- what is put right -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"nights": "3"}, {"nights": 3}),
        ({"nights": 3.0}, {"nights": 3}),
        ({"nights": " 3 "}, {"nights": 3}),
        ({"price": "79.5"}, {"price": 79.5}),
        ({"breakfast": "True"}, {"breakfast": True}),
        ({"breakfast": "false"}, {"breakfast": False}),
        ({"notes": '["late"]'}, {"notes": ["late"]}),
        ({"notes": "null"}, {"notes": None}),
        ({"nights": None}, {}),
    ],
)
def test_what_is_unambiguous_is_put_right(wrong: dict[str, Any], right: dict[str, Any]) -> None:
    mended, meant = bound(book, {"room": "1", **wrong}), bound(book, {"room": "1", **right})

    assert mended.call() == meant.call()
    assert mended.key == meant.key


@pytest.mark.parametrize(
    "wrong",
    [
        {"nights": "3.5"},
        {"nights": 3.5},
        {"nights": "three"},
        {"nights": ""},
        {"nights": True},
        {"breakfast": 1},
        {"notes": "late"},
    ],
)
def test_what_would_be_a_guess_is_refused(wrong: dict[str, Any]) -> None:
    assert problems(book, {"room": "1", **wrong})


def test_a_string_stays_a_string_where_one_is_allowed() -> None:
    @tool
    def note(text: str, either: int | str = 0, anything: Any = None) -> Any:
        """Note."""
        return text, either, anything

    assert bound(note, {"text": "3", "either": "4", "anything": "5"}).call() == ("3", "4", "5")


def test_values_inside_classes_are_put_right_too() -> None:
    @dataclasses.dataclass
    class Guest:
        age: int
        luggage: list[int]

    @tool
    def check_in(guests: list[Guest]) -> Any:
        """Check in."""
        return guests

    assert bound(check_in, {"guests": '[{"age": "3", "luggage": "[1]"}]'}).call() == [Guest(3, [1])]


# --- calling the body ------------------------------------------------------------------------------


def test_values_without_a_declared_type_are_plain_and_mutable() -> None:
    @tool
    def store(data: dict, item: Any, rows: list[Any]) -> Any:  # type: ignore[type-arg]
        """Store."""
        data["new"] = 1
        item["list"].append(2)
        rows[0].append(3)
        return data, item, rows

    arguments = freeze({"data": {"a": [1]}, "item": {"list": [1]}, "rows": [[1]]})

    assert bound(store, arguments).call() == ({"a": [1], "new": 1}, {"list": [1, 2]}, [[1, 3]])
    assert arguments == freeze({"data": {"a": [1]}, "item": {"list": [1]}, "rows": [[1]]})


def test_a_body_that_is_entered_again_finds_its_arguments_as_they_were() -> None:
    @tool
    def drain(items: list[int], more: Any) -> Any:
        """Drain."""
        return [items.pop(), more.pop()]

    call = bound(drain, {"items": [1, 2], "more": [3, 4]})

    assert call.call() == [2, 4]
    assert call.call() == [2, 4]
    assert call.arguments == {"items": [1, 2], "more": [3, 4]}


def test_a_lone_surrogate_and_nan_reach_the_body() -> None:
    @tool
    def take(text: str, number: float) -> Any:
        """Take."""
        return text, repr(number)

    assert bound(take, {"text": "\ud800", "number": float("nan")}).call() == ("\ud800", "nan")


# --- the key ---------------------------------------------------------------------------------------


def test_the_key_does_not_depend_on_the_order_of_arguments() -> None:
    arguments = {"room": "1", "nights": 2, "notes": ["a"]}
    keys = {key(book, dict(order)) for order in itertools.permutations(arguments.items())}

    assert len(keys) == 1


def test_the_key_does_not_depend_on_defaults_being_spelled_out() -> None:
    spelled = {"room": "1", "nights": 1, "price": 80, "breakfast": False, "notes": None}

    assert key(book, {"room": "1"}) == key(book, spelled)


def test_a_whole_number_as_the_default_of_a_float_is_the_same_spelled_out() -> None:
    @tool
    def heat(degrees: float = 20) -> None:
        """Heat."""

    assert key(heat, {}) == key(heat, {"degrees": 20}) == key(heat, {"degrees": 20.0})


def test_the_defaults_of_classes_may_be_spelled_out_too() -> None:
    @dataclasses.dataclass
    class Where:
        city: str
        radius: float = 5
        tags: list[str] = dataclasses.field(default_factory=list)

    class Who(pydantic.BaseModel):
        name: str = "anyone"

    @tool
    def find(where: Where, who: Who = Who(), also: Where | None = None) -> None:  # noqa: B008
        """Find."""

    short = {"where": {"city": "Ulm"}}
    long = {"where": {"tags": [], "radius": 5.0, "city": "Ulm"}, "also": None, "who": {"name": "anyone"}}

    assert key(find, short) == key(find, long)


def test_different_arguments_have_different_keys() -> None:
    @tool
    def take(a: Any = None, b: float | None = None, c: str = "") -> None:
        """Take."""

    variants: list[dict[str, Any]] = [
        {},
        {"a": 1},
        {"a": "1"},
        {"a": True},
        {"a": [1]},
        {"a": {"1": 1}},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": [None]},
        {"a": [float("nan")]},
        {"b": float("nan")},
        {"b": float("-inf")},
        {"b": 0.0},
        {"c": "\ud800"},
        {"c": "\udfff"},
        {"c": "null"},
        {"a": 2**70},
        {"a": 2**70 + 1},
    ]

    assert len({key(take, each) for each in variants}) == len(variants)


def test_what_json_would_hide_still_tells_calls_apart() -> None:
    class Login(pydantic.BaseModel):
        password: pydantic.SecretStr
        hidden: str = pydantic.Field(default="", exclude=True)

    @attrs.frozen
    class Private:
        _pin: int

    @tool
    def enter(login: Login, private: Private) -> None:
        """Enter."""

    def keyed(password: str, hidden: str, pin: int) -> str:
        return key(enter, {"login": {"password": password, "hidden": hidden}, "private": {"_pin": pin}})

    assert len({keyed("a", "x", 1), keyed("b", "x", 1), keyed("a", "y", 1), keyed("a", "x", 2)}) == 4


def test_a_default_that_is_generated_does_not_change_the_key() -> None:
    @dataclasses.dataclass
    class Request:
        text: str
        id: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)

    @tool
    def send(request: Request) -> None:
        """Send."""

    assert key(send, {"request": {"text": "a"}}) == key(send, {"request": {"text": "a"}})


def test_two_tools_never_share_a_key() -> None:
    one, two = tool(book, name="one"), tool(book, name="two")

    assert key(one, {"room": "1"}) != key(two, {"room": "1"})


def test_keys_are_the_same_in_every_process() -> None:
    @tool
    def look(key: str) -> None:
        """Look."""

    assert key(look, {"key": "a"}) == call_key("look", {"key": "a"}) == "190a5767e8d2b9cdf20899dd8ee188da"


def test_a_key_for_arguments_that_were_never_checked() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    odd: list[Any] = [
        {},
        {"a": "\ud800"},
        {"a": float("nan")},
        {"a": None},
        {"a": deep},
        {1: 2},
        {"a": {1, "a"}},
        {"a": object},
    ]

    keys = {call_key("no\udfff", each) for each in odd}

    assert len(keys) == len(odd)
    assert call_key("a", {"x": 1, "y": 2}) == call_key("a", freeze({"y": 2, "x": 1}))


def test_limits_are_checked_before_the_body() -> None:
    entered = []

    @tool
    def pay(cents: Annotated[int, msgspec.Meta(gt=0)]) -> None:
        """Pay."""
        entered.append(cents)

    assert problems(pay, {"cents": 0}) == ["$.cents: expected integer > 0, got 0"]
    assert entered == []
