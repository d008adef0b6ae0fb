"""Arguments that convert to equal values have equal keys and equal canonical forms, and others have different ones."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Optional
from uuid import UUID

import attrs
import pydantic
from hypothesis import example, given
from hypothesis import strategies as st

from locus.core.frozen import freeze
from locus.tools import Bound, Tool, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Room:
    number: int
    rate: float = 80.0
    at: datetime | None = None


def lowered(text: str) -> str:
    return text.lower()


@attrs.frozen
class Lower:
    text: str = attrs.field(converter=lowered)


@dataclasses.dataclass(frozen=True)
class Stay:
    nights: Decimal
    room: Room
    tags: frozenset[str] = frozenset()


class Guest(pydantic.BaseModel):
    name: str = "anyone"
    born: datetime | None = None
    weight: float = 1.0


NUMBERS: list[Any] = [0, 0.0, -0.0, 1, 1.0, -1, 2**53, float(2**53), 2**53 + 1, 0.5, 10**30, 1e30, float("inf")]
TEXTS: list[Any] = ["", "a", "A", "1", "1.0", "true", "\ud800", "\u02c0\x00\x00\x00\x00\x00\x00\x00"]

#: Annotations that need no others, each with the JSON that is tried: much of it means the same in several ways.
LEAVES: dict[Any, list[Any]] = {
    int: [0, 1, -1, 1.0, 2**40],
    float: [*NUMBERS, 1e-300],
    bool: [True, False],
    str: TEXTS,
    Any: [*NUMBERS, *TEXTS, True, False, None, [1, 2], [1.0, 2], [True], {"a": 1}, {"a": 1.0}, {"a": -0.0}],
    int | float: NUMBERS,
    bool | int: [True, False, 1, 0, 1.0],
    datetime: [
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00+01:00",
        "2025-12-31T23:30:00-00:30",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.5Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
    date: ["2026-01-01", "2026-01-02"],
    time: [
        "00:30:00",
        "00:30:00Z",
        "01:30:00+01:00",
        "00:30:00+01:00",
        "01:30:00+02:00",
        "23:30:00Z",
        "23:30:00-01:00",
        "22:30:00-02:00",
        "22:30:00-23:59",
    ],
    timedelta: ["PT1H", "PT60M", "P1D", "PT24H", "-PT1H"],
    Decimal: ["1", "1.0", "1.00", "1E0", "10E-1", "10", "1E1", "0", "-0", "0.00", "1E+40", "1e-40", "0.1", 1, 0.5],
    Path: ["a", "a/", "./a", "a//b", "a/b", "/a", ""],
    UUID: ["12345678123456781234567812345678", "12345678-1234-5678-1234-567812345678"],
    bytes: ["YQ==", "YWI=", ""],
    Color: ["red", "blue"],
    Literal["a", 1]: ["a", 1],
    Room: [{"number": 1}, {"number": 1, "rate": 80}, {"number": 1.0, "rate": 80.0, "at": None}, {"number": 2}],
    Lower: [{"text": "A"}, {"text": "a"}, {"text": "b"}],
    Stay: [
        {"nights": "1", "room": {"number": 1}},
        {"nights": "1.0", "room": {"number": 1, "rate": 80}, "tags": []},
        {"nights": "1.0", "room": {"number": 1}, "tags": ["b", "a"]},
        {"nights": "1.0", "room": {"number": 1}, "tags": ["a", "b", "a"]},
    ],
    Guest: [
        {},
        {"name": "anyone", "weight": 1},
        {"born": "2026-01-01T00:00:00Z"},
        {"born": "2026-01-01T01:00:00+01:00"},
    ],
}
HASHABLE = (str, datetime, Decimal, Path, time, UUID, Room)


def leaf(annotation: Any) -> tuple[Any, st.SearchStrategy[Any]]:
    return annotation, st.sampled_from(LEAVES[annotation])


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def lists(each: Any) -> Any:
        return list[each[0]], st.lists(each[1], max_size=2)

    def dicts(each: Any) -> Any:
        return dict[str, each[0]], st.dictionaries(st.sampled_from("ab"), each[1], max_size=2)

    def optional(each: Any) -> Any:
        return Optional[each[0]], st.none() | each[1]  # noqa: UP045  an annotation that is known only here

    def pairs(each: Any) -> Any:
        return tuple[each[0], int], st.tuples(each[1], st.integers(0, 1)).map(list)

    return st.one_of(inner.map(lists), inner.map(dicts), inner.map(optional), inner.map(pairs))


def sets(annotation: Any) -> Any:
    return set[annotation], st.lists(st.sampled_from(LEAVES[annotation]), max_size=3)


kinds: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(list(LEAVES)).map(leaf) | st.sampled_from(HASHABLE).map(sets), larger, max_leaves=3
)


def tool_taking(annotation: Any) -> Tool[..., Any]:
    def take(x: Any, other: int = 1) -> None:
        """Take."""

    take.__annotations__["x"] = annotation
    return tool(take)


def is_same(one: Any, two: Any) -> bool:
    """Equality of values in which True is not 1."""
    numbers = (int, float)
    if type(one) is not type(two) and not (type(one) in numbers and type(two) in numbers):
        return False
    if isinstance(one, Mapping):
        return one.keys() == two.keys() and all(is_same(one[k], two[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(is_same, one, two))
    return bool(one == two)


@given(data=st.data(), kind=kinds)
def test_equal_values_have_equal_keys_and_different_values_different_ones(data: st.DataObject, kind: Any) -> None:
    annotation, forms = kind
    made = tool_taking(annotation)
    one, two = (made.bind(freeze({"x": data.draw(forms)})) for _ in range(2))
    if not isinstance(one, Bound) or not isinstance(two, Bound):
        return  # a date beyond what Python has, a decimal that is a float under this union
    same = is_same(one.arguments["x"], two.arguments["x"])
    assert (one.key == two.key) is same, (annotation, one.arguments, two.arguments)
    if same:
        assert one.data == two.data


@given(data=st.data(), kind=kinds)
def test_the_form_converts_to_equal_values_and_is_its_own_form(data: st.DataObject, kind: Any) -> None:
    annotation, forms = kind
    made = tool_taking(annotation)
    bound = made.bind(freeze({"x": data.draw(forms)}))
    if not isinstance(bound, Bound):
        return
    again = made.bind(bound.data)
    assert isinstance(again, Bound), (bound.data, str(again))
    assert is_same(bound.arguments["x"], again.arguments["x"])
    assert (again.key, again.data) == (bound.key, bound.data)
    assert bound.data["other"] == 1


@given(data=st.data(), kind=kinds)
def test_what_a_wrapper_leaves_alone_keeps_its_value(data: st.DataObject, kind: Any) -> None:
    annotation, forms = kind
    made = tool_taking(annotation)
    bound = made.bind(freeze({"x": data.draw(forms)}))
    if not isinstance(bound, Bound):
        return
    changed = bound.rebind({**bound.data, "other": 2})
    assert isinstance(changed, Bound)
    assert is_same(bound.arguments["x"], changed.arguments["x"])
    assert changed.arguments["other"] == 2


json_values = st.recursive(
    st.sampled_from([*NUMBERS, True, False, None, *TEXTS]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@example([0.0, "\u02c0\x00\x00\x00\x00\x00\x00\x00"], [-0.0, "\u02c0\x00\x00\x00\x00\x00\x00\x00"])
@given(json_values, json_values)
def test_data_without_a_type_is_compared_by_value(one: Any, two: Any) -> None:
    made = tool_taking(Any)
    first, second = (made.bind(freeze({"x": each})) for each in (one, two))
    assert isinstance(first, Bound)
    assert isinstance(second, Bound)
    assert (first.key == second.key) is is_same(one, two)
