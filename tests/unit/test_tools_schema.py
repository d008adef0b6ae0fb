"""From annotations to JSON Schema, and from arguments to the annotated types: every kind of type a user writes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import typing
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ForwardRef, Generic, Literal, NamedTuple, NewType, Optional, TypeVar
from uuid import UUID

import annotated_types
import attrs
import msgspec
import pydantic
import pytest

from locus.core.errors import ToolDefinitionError
from locus.core.frozen import freeze, thaw
from locus.tools import ArgumentError, Bound, Tool, tool
from locus.tools.definition import ToolSpec

T = TypeVar("T")
Cents = NewType("Cents", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    """A place on the map."""

    x: int
    y: int = 0


def in_order(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tags))


@attrs.frozen
class Order:
    item: str
    tags: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    amount: int = attrs.field(default=1, validator=attrs.validators.gt(0))
    _note: str = "none"
    total: int = attrs.field(init=False, default=0)


class Address(typing.TypedDict, total=False):
    street: typing.Required[str]
    number: int


class Pair(NamedTuple):
    first: int
    second: str = "b"


class Wire(msgspec.Struct):
    size: int


class Person(pydantic.BaseModel):
    """Somebody."""

    name: str
    age: Annotated[int, pydantic.Field(ge=0, description="in years")] = 3
    friend: Person | None = None


@dataclasses.dataclass
class Circle:
    radius: float


@dataclasses.dataclass
class Square:
    side: float
    label: str = ""


@dataclasses.dataclass
class Drawing:
    shapes: list[Circle | Square]


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Chain:
    value: int
    rest: Chain | None = None


@dataclasses.dataclass
class Box(Generic[T]):
    content: T


@pydantic.dataclasses.dataclass
class Checked:
    size: Annotated[int, pydantic.Field(gt=10)]


def taking(annotation: Any) -> Tool[..., Any]:
    """A tool with one parameter, ``it``, of a type."""

    def take(it: Any) -> Any:
        """Take it."""
        return it

    take.__annotations__["it"] = annotation
    return tool(take)


def schema_of(annotation: Any) -> Any:
    return thaw(taking(annotation).spec.properties["it"])


def passed(annotation: Any, data: Any) -> Any:
    bound = taking(annotation).bind(freeze({"it": data}))
    assert isinstance(bound, Bound), str(bound)
    return bound.call()


def refused(annotation: Any, data: Any) -> str:
    outcome = taking(annotation).bind(freeze({"it": data}))
    assert isinstance(outcome, ArgumentError)
    return "; ".join(map(str, outcome.problems))


STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
POINT = {
    "type": "object",
    "description": "A place on the map.",
    "properties": {"x": INTEGER, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}


@pytest.mark.parametrize(
    ("annotation", "schema", "data", "value"),
    [
        (str, STRING, "a", "a"),
        (int, INTEGER, 3, 3),
        (float, {"type": "number"}, 3, 3.0),
        (bool, {"type": "boolean"}, True, True),
        (None, NULL, None, None),
        (Any, {}, {"a": [1]}, {"a": [1]}),
        (object, {}, [{"a": 1}], [{"a": 1}]),
        (list, {"type": "array"}, [1, "a"], [1, "a"]),
        (dict, {"type": "object"}, {"a": [1]}, {"a": [1]}),
        (list[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (Sequence[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (Iterable[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (set[str], {"type": "array", "items": STRING, "uniqueItems": True}, ["a"], {"a"}),
        (tuple[int, ...], {"type": "array", "items": INTEGER}, [1, 2], (1, 2)),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [INTEGER, STRING], "items": False, "minItems": 2, "maxItems": 2},
            [1, "a"],
            (1, "a"),
        ),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, {"a": 1}, {"a": 1}),
        (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}, {"a": 1}, {"a": 1}),
        (int | None, {"anyOf": [INTEGER, NULL]}, None, None),
        (Optional[int], {"anyOf": [INTEGER, NULL]}, 3, 3),  # noqa: UP045  users write it
        (int | str, {"anyOf": [INTEGER, STRING]}, "3", "3"),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "b", "b"),
        (Literal["a", 1], {"enum": [1, "a"]}, 1, 1),
        (Colour, {"enum": ["blue", "red"], "type": "string"}, "red", Colour.RED),
        (Level, {"enum": [1, 2], "type": "integer"}, 2, Level.HIGH),
        (Cents, INTEGER, 5, 5),
        (bytes, {"type": "string", "contentEncoding": "base64"}, "aGk=", b"hi"),
        (Decimal, {"type": "string", "format": "decimal"}, "1.50", Decimal("1.50")),
        (
            UUID,
            {"type": "string", "format": "uuid"},
            "12345678-1234-5678-1234-567812345678",
            UUID("12345678-1234-5678-1234-567812345678"),
        ),
        (Path, {"type": "string", "format": "path"}, "a/b", Path("a/b")),
        (dt.date, {"type": "string", "format": "date"}, "2024-02-29", dt.date(2024, 2, 29)),
        (
            dt.datetime,
            {"type": "string", "format": "date-time"},
            "2024-02-29T10:00:00Z",
            dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC),
        ),
        (Point, POINT, {"x": 1}, Point(1, 0)),
        (list[Point], {"type": "array", "items": POINT}, [{"x": 1}], [Point(1)]),
        (Point | None, {"anyOf": [POINT, NULL]}, {"x": 1}, Point(1)),
        (
            Box[int],
            {"type": "object", "properties": {"content": INTEGER}, "required": ["content"]},
            {"content": 1},
            Box(1),
        ),
        (
            Address,
            {"type": "object", "properties": {"street": STRING, "number": INTEGER}, "required": ["street"]},
            {"street": "s"},
            {"street": "s"},
        ),
        (Wire, {"type": "object", "properties": {"size": INTEGER}, "required": ["size"]}, {"size": 1}, Wire(1)),
    ],
    ids=str,
)
def test_a_type_has_a_schema_and_gets_its_values(annotation: Any, schema: Any, data: Any, value: Any) -> None:
    assert schema_of(annotation) == schema

    given = passed(annotation, data)

    assert given == value
    assert type(given) is type(value)


def test_named_tuples_are_arrays() -> None:
    assert schema_of(Pair)["prefixItems"] == [INTEGER, {"type": "string", "default": "b"}]
    assert passed(Pair, [1]) == Pair(1, "b")


def test_the_schema_allows_nothing_else() -> None:
    parameters = taking(int).spec.parameters

    assert thaw(parameters) == {
        "type": "object",
        "properties": {"it": INTEGER},
        "required": ["it"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_has_an_empty_schema() -> None:
    @tool
    def now() -> str:
        """The time."""
        return "noon"

    assert thaw(now.spec.parameters) == {"type": "object", "properties": {}, "additionalProperties": False}
    bound = now.bind({})
    assert isinstance(bound, Bound)
    assert bound.call() == "noon"


def test_attrs_classes_are_made_by_their_own_init() -> None:
    assert passed(Order, {"item": "tea", "tags": ["b", "a"]}) == Order("tea", ["b", "a"])
    assert "'amount' must be > 0: -1" in refused(Order, {"item": "tea", "amount": -1})
    assert "total" not in schema_of(Order)["properties"]


def test_a_pydantic_model_is_served_by_its_own_methods() -> None:
    shown = taking(Person).spec.parameters

    assert thaw(shown["properties"]["it"]) == {"$ref": "#/$defs/Person"}
    assert thaw(shown["$defs"]["Person"]["properties"]["age"])["description"] == "in years"
    assert passed(Person, {"name": "Ada", "friend": {"name": "Bob"}}) == Person(name="Ada", friend=Person(name="Bob"))
    assert passed(Person | None, None) is None
    assert refused(Person, {"age": -1}) == (
        "$.it.age: expected integer >= 0, got -1; $.it.name: missing; expected string"
    )


def test_a_check_of_a_pydantic_model_reaches_the_model_on_one_line() -> None:
    class Even(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def check(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    assert refused(Even, {"number": 3}) == "$.it: number: Value error, must be even"


def test_a_pydantic_dataclass_checks_its_fields() -> None:
    assert passed(Checked, {"size": 11}) == Checked(11)
    assert refused(Checked, {"size": 3}) == "$.it.size: expected integer > 10, got 3"


def test_a_union_of_classes_takes_the_one_that_fits() -> None:
    assert passed(Circle | Square, {"radius": 2}) == Circle(2.0)
    assert passed(Circle | Square | None, {"side": 2}) == Square(2.0)
    assert passed(Circle | Square | None, None) is None
    assert passed(Person | Square, {"side": 2, "label": "x"}) == Square(2.0, "x")
    assert passed(Drawing, {"shapes": [{"side": 1}, {"radius": 2}]}) == Drawing([Square(1.0), Circle(2.0)])


def test_of_two_classes_that_fit_the_one_that_uses_more_of_the_data_is_meant() -> None:
    @dataclasses.dataclass
    class Less:
        name: str

    @dataclasses.dataclass
    class More:
        name: str
        size: int = 0

    assert passed(Less | More, {"name": "a", "size": 3}) == More("a", 3)
    assert passed(More | Less, {"name": "a"}) == More("a")


def test_a_recursive_class_refers_to_itself() -> None:
    shown = taking(Tree).spec.parameters

    assert thaw(shown["properties"]["it"]["properties"]["children"]["items"]) == {"$ref": "#/$defs/Tree"}
    assert thaw(shown["$defs"]["Tree"]["properties"]["children"]["items"]) == {"$ref": "#/$defs/Tree"}
    assert passed(Tree, {"value": 1, "children": [{"value": 2}]}) == Tree(1, [Tree(2)])
    assert "$.it.children[0].value: expected integer" in refused(Tree, {"value": 1, "children": [{"value": "x"}]})


def test_two_classes_of_one_name_keep_apart() -> None:
    rest: Any = (ForwardRef("Chain | None"), None)
    other = pydantic.create_model("Chain", left=(Person, ...), rest=rest)

    def take(a: Any, b: Any) -> Any:
        """Take them."""
        return a, b

    take.__annotations__.update(a=Chain, b=other)
    made = tool(take)
    schema = made.spec.parameters
    names = [schema["properties"][n]["$ref"].removeprefix("#/$defs/") for n in "ab"]
    bound = made.bind({"a": {"value": 1}, "b": {"left": {"name": "Ada"}}})

    assert len(set(names)) == 2
    assert "value" in schema["$defs"][names[0]]["properties"]
    assert "left" in schema["$defs"][names[1]]["properties"]
    assert isinstance(bound, Bound)
    assert bound.call() == (Chain(1), other(left=Person(name="Ada")))


@pytest.mark.parametrize("own_init", [False, True])
def test_a_schema_that_would_explode_keeps_its_references(own_init: bool) -> None:
    converter = tuple if own_init else None
    inner: Any = int
    for i in range(30):
        fields: dict[str, Any] = {name: attrs.field(type=inner, converter=converter) for name in ("left", "right")}
        inner = attrs.make_class(f"Level{i}", fields)

    text = json.dumps(thaw(taking(inner).spec.parameters))

    assert len(text) < 20_000


# --- descriptions and constraints ------------------------------------------------------------------


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[int, msgspec.Meta(ge=1, le=9, description="how many")],
        Annotated[int, "how many", annotated_types.Ge(1), annotated_types.Le(9)],
        Annotated[int, pydantic.Field(ge=1, le=9, description="how many")],
        Annotated[int, annotated_types.Interval(ge=1, le=9), "how many"],
    ],
    ids=["msgspec", "annotated-types", "pydantic", "interval"],
)
def test_limits_and_descriptions_may_be_written_in_any_of_the_usual_ways(annotation: Any) -> None:
    assert schema_of(annotation) == {"type": "integer", "minimum": 1, "maximum": 9, "description": "how many"}
    assert passed(annotation, 9) == 9
    assert refused(annotation, 10) == "$.it: expected integer <= 9, got 10"


def test_a_limit_on_an_optional_value_is_a_limit_on_the_value() -> None:
    annotation = Annotated[int | None, pydantic.Field(ge=1, description="how many")]

    assert schema_of(annotation) == {"anyOf": [{"type": "integer", "minimum": 1}, NULL], "description": "how many"}
    assert passed(annotation, None) is None
    assert "expected integer >= 1" in refused(annotation, 0)


def test_lengths_and_patterns_are_enforced() -> None:
    annotation = Annotated[str, msgspec.Meta(min_length=2, pattern="^[a-z]+$")]

    assert schema_of(annotation) == {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"}
    assert refused(annotation, "A") == (
        "$.it: expected at least 2 characters, got 1; $.it: expected a string that matches '^[a-z]+$', got 'A'"
    )


class Named(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(pattern="(a+)+$")]


@pytest.mark.parametrize(
    ("annotation", "wrap"),
    [
        (Annotated[str, msgspec.Meta(pattern="(a+)+$")], lambda text: text),
        (Annotated[str | None, pydantic.Field(pattern="(a+)+$")], lambda text: text),
        (list[Annotated[str, msgspec.Meta(pattern="(a+)+$")]], lambda text: [text]),
        (dict[Annotated[str, msgspec.Meta(pattern="(a+)+$")], int], lambda text: {text: 1}),
        (Annotated[str, msgspec.Meta(pattern="(a+)+$")] | int, lambda text: text),
        (Named, lambda text: {"name": text}),
    ],
    ids=["msgspec", "optional", "list", "keys", "union", "struct"],
)
def test_no_pattern_meets_an_argument_that_keeps_it_busy(annotation: Any, wrap: Any) -> None:
    """An engine that backtracks tries 2**40 ways."""
    assert passed(annotation, wrap("a" * 40)) is not None
    assert "expected a string that matches '(a+)+$'" in refused(annotation, wrap("a" * 40 + "!"))


def test_a_pattern_that_needs_backtracking_is_refused_with_the_tool() -> None:
    def take(it: Annotated[str, msgspec.Meta(pattern="(?=.*a)b")]) -> None:
        """Take."""

    with pytest.raises(ToolDefinitionError, match=r"'it'.* is refused: .*without look-around"):
        tool(take)


def test_an_annotation_describes_before_the_docstring_does() -> None:
    def take(a: Annotated[int, "from the annotation"], b: int) -> None:
        """Take.

        Args:
            a: from the docstring.
            b: from the docstring.
        """

    properties = tool(take).spec.properties

    assert properties["a"]["description"] == "from the annotation"
    assert properties["b"]["description"] == "from the docstring."


# --- defaults --------------------------------------------------------------------------------------


def test_defaults_are_shown_as_json() -> None:
    def take(
        a: int = 3,
        b: Colour = Colour.RED,
        c: list[int] = [1, 2],  # noqa: B006  users write it
        d: Point = Point(1, 2),  # noqa: B008
        e: Path = Path("x"),
        f: int = None,  # type: ignore[assignment]  # noqa: RUF013
        g: float = float("nan"),
    ) -> Any:
        """Take."""
        return (a, b, c, d, e, f)

    made = tool(take)
    shown = {name: each.get("default", "absent") for name, each in made.spec.properties.items()}
    bound = made.bind({})

    assert thaw(shown) == {"a": 3, "b": "red", "c": [1, 2], "d": {"x": 1, "y": 2}, "e": "x", "f": None, "g": "absent"}
    assert isinstance(bound, Bound)
    assert bound.call() == (3, Colour.RED, [1, 2], Point(1, 2), Path("x"), None)
    assert "required" not in made.spec.parameters


def test_a_default_may_be_any_object() -> None:
    missing = object()

    def take(it: Any = missing) -> Any:
        """Take."""
        return it

    bound = tool(take).bind({})

    assert isinstance(bound, Bound)
    assert bound.call() is missing


# --- annotations as text ---------------------------------------------------------------------------


def test_classes_of_the_enclosing_function_are_found() -> None:
    @dataclasses.dataclass
    class Outer:
        inner: list[Inner]

    @attrs.frozen
    class Inner:
        size: int

    @tool
    def take(it: Outer, also: "list['Inner'] | None" = None) -> Any:  # noqa: UP037  users write it
        """Take."""
        return it, also

    bound = take.bind({"it": {"inner": [{"size": 3}]}, "also": [{"size": 4}]})

    assert isinstance(bound, Bound)
    assert bound.call() == (Outer([Inner(3)]), [Inner(4)])


def test_classes_of_the_enclosing_function_are_found_for_plain_functions_too() -> None:
    @dataclasses.dataclass
    class Local:
        size: int

    def take(it: Local) -> Any:
        """Take."""
        return it

    def elsewhere(fn: Any) -> Any:
        return tool(fn)

    assert tuple(elsewhere(take).spec.properties["it"]["properties"]) == ("size",)


@dataclasses.dataclass
class Seeded:
    size: int
    seed: dataclasses.InitVar[int]


@pytest.mark.parametrize(
    "annotation", [Seeded, complex, type, Box[complex], list[complex], typing.Callable[[int], int], 3]
)
def test_a_type_without_json_is_refused_by_name(annotation: Any) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        taking(annotation)

    assert "parameter 'it'" in str(caught.value)
    assert "take" in str(caught.value)


def test_a_tool_is_encoded_once_a_form() -> None:
    spec = ToolSpec(name="look", description="Looks.", parameters=freeze({"type": "object"}))
    calls: list[str] = []

    def encode(given: ToolSpec) -> str:
        calls.append(given.name)
        return f"<{given.name}>"

    assert [spec.wire("a", encode), spec.wire("a", encode), spec.wire("b", encode)] == ["<look>"] * 3
    assert calls == ["look", "look"]
