"""The laws of tool arguments: nothing a model makes up raises, and what means the same has one key."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
import msgspec
import pydantic
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import RetryableToolError
from locus.core.frozen import freeze, thaw
from locus.models.output import OutputError, output_schema
from locus.schema.checking import find_problems, normalise
from locus.schema.jsonschema import kind_of
from locus.tools import ArgumentError, Bound, ToolRegistry, call_key, error_text, result_content, result_text, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Place:
    city: str
    radius: float = 5
    tags: list[str] = dataclasses.field(default_factory=list)


@attrs.frozen
class Stay:
    nights: int = attrs.field(default=1, converter=int, validator=attrs.validators.ge(1))
    place: Place | None = None


class Guest(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=18, ge=0)
    friends: list[Guest] = []


@tool
def everything(
    text: str,
    count: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1,
    ratio: float = 1,
    flag: bool = False,
    choice: Literal["a", "b"] | None = None,
    colour: Colour = Colour.RED,
    when: dt.date | None = None,
    numbers: list[int] | None = None,
    either: Place | Stay | None = None,
    guest: Guest | None = None,
    table: dict[str, float] | None = None,
    anything: Any = None,
) -> dict[str, Any]:
    """Take one of everything."""
    return locals()


@tool
def simple(text: str, count: int = 1, ratio: float = 1, names: list[str] | None = None, anything: Any = None) -> None:
    """Take what encodes to JSON as it is."""


REGISTRY = ToolRegistry(everything, simple)
PARAMETERS = sorted(everything.spec.properties)

# What a provider may hand over: any text, lone surrogates included, NaN, integers of any size, odd keys.
texts = st.text(st.characters(exclude_categories=()), max_size=8)
atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts
    | st.sampled_from(["3", "true", "null", "[1]", "red", "2024-02-29", "a", '{"city": "Ulm"}', 3.0, 2**70])
)
json_values = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.sampled_from(PARAMETERS), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.sampled_from(PARAMETERS) | texts, json_values, max_size=5)

places = st.fixed_dictionaries(
    {"city": texts}, optional={"radius": st.integers(-9, 9) | st.floats(), "tags": st.lists(texts, max_size=2)}
)
stays = st.fixed_dictionaries({"nights": st.integers(1, 9)}, optional={"place": st.none() | places})
guests = st.fixed_dictionaries(
    {"name": st.text(max_size=4)},
    optional={
        "age": st.integers(0, 99),
        "friends": st.lists(st.fixed_dictionaries({"name": st.just("x")}), max_size=2),
    },
)
good_arguments = st.fixed_dictionaries(
    {"text": texts},
    optional={
        "count": st.integers(0, 1000),
        "ratio": st.floats() | st.integers(-(10**9), 10**9),
        "flag": st.booleans(),
        "choice": st.sampled_from(["a", "b", None]),
        "colour": st.sampled_from(["red", "blue"]),
        "when": st.none() | st.dates().map(str),
        "numbers": st.none() | st.lists(st.integers(), max_size=3),
        "either": st.none() | places | stays,
        "guest": st.none() | guests,
        "table": st.none() | st.dictionaries(texts, st.floats(), max_size=2),
        "anything": json_values,
    },
)
simple_arguments = st.fixed_dictionaries(
    {"text": texts},
    optional={
        "count": st.integers(),
        "ratio": st.floats() | st.integers(-(10**9), 10**9),
        "names": st.none() | st.lists(texts, max_size=2),
        "anything": json_values,
    },
)


def bound(arguments: Any, made: Any = everything) -> Bound:
    outcome = made.bind(freeze(arguments))
    assert isinstance(outcome, Bound), str(outcome)
    return outcome


def reordered(data: Any) -> Any:
    """The same data with the entries of every object in the opposite order."""
    if isinstance(data, Mapping):
        return {name: reordered(data[name]) for name in reversed(list(data))}
    return [reordered(each) for each in data] if isinstance(data, list) else data


# --- binding ---------------------------------------------------------------------------------------


@given(arguments | json_values)
def test_binding_never_raises_and_its_text_can_be_sent(given_: Any) -> None:
    outcome = everything.bind(freeze(given_))

    if isinstance(outcome, ArgumentError):
        assert outcome.problems
        assert len(str(outcome)) < 6_000
        str(outcome).encode()
    else:
        assert set(outcome.call()) == set(PARAMETERS)


@given(good_arguments)
def test_what_fits_is_bound_to_the_declared_types(given_: dict[str, Any]) -> None:
    values = bound(given_).call()

    assert type(values["text"]) is str
    assert type(values["count"]) is int
    assert isinstance(values["colour"], Colour)
    assert isinstance(values["either"], Place | Stay | None)
    assert isinstance(values["guest"], Guest | None)
    assert kind_of(values["anything"]) == kind_of(given_.get("anything"))
    assert repr(values["text"]) == repr(given_["text"])


@given(good_arguments)
def test_binding_changes_nothing_it_was_given(given_: dict[str, Any]) -> None:
    frozen = freeze(given_)
    before = repr(frozen)

    bound(given_).call()
    outcome = everything.bind(frozen)

    assert isinstance(outcome, Bound)
    assert repr(outcome.call()) == repr(outcome.call())
    assert repr(frozen) == before


@given(good_arguments, st.sampled_from(PARAMETERS), json_values)
def test_a_fault_is_reported_at_its_own_parameter(given_: dict[str, Any], name: str, value: Any) -> None:
    outcome = everything.bind(freeze({**given_, name: value}))

    if isinstance(outcome, ArgumentError):
        assert {problem.path.split(".")[1].split("[")[0] for problem in outcome.problems} == {name}


# --- keys ------------------------------------------------------------------------------------------


@given(good_arguments)
def test_the_key_does_not_depend_on_any_order(given_: dict[str, Any]) -> None:
    assert bound(given_).key == bound(reordered(given_)).key


@given(simple_arguments)
def test_the_same_holds_where_the_key_is_made_from_the_values(given_: dict[str, Any]) -> None:
    spelled = {"count": 1, "ratio": 1, "names": None, "anything": None, **given_}

    assert bound(given_, simple).key == bound(reordered(given_), simple).key == bound(spelled, simple).key


@given(good_arguments)
def test_the_key_does_not_depend_on_defaults_being_spelled_out(given_: dict[str, Any]) -> None:
    schema = thaw(everything.spec.parameters)
    defaults = {name: each["default"] for name, each in schema["properties"].items() if "default" in each}
    spelled = {**defaults, **given_}
    if isinstance(spelled.get("guest"), dict):
        spelled["guest"] = {"age": 18, "friends": [], **spelled["guest"]}

    assert set(defaults) == set(PARAMETERS) - {"text"}
    assert bound(given_).key == bound(spelled).key


@given(simple_arguments, simple_arguments)
def test_calls_whose_bodies_see_different_values_have_different_keys(one: dict[str, Any], two: dict[str, Any]) -> None:
    first, second = bound(one, simple), bound(two, simple)

    if first.key == second.key:
        assert repr(canon(first.arguments)) == repr(canon(second.arguments))


def canon(data: Any) -> Any:
    if isinstance(data, dict):
        return sorted(((repr(k), canon(v)) for k, v in data.items()), key=lambda pair: pair[0])
    return [canon(each) for each in data] if isinstance(data, list) else data


@given(st.text(), json_values, json_values)
def test_a_key_is_made_of_anything(name: str, one: Any, two: Any) -> None:
    key = call_key(name, freeze({"a": one}))

    assert len(key) == 32
    assert key == call_key(name, freeze(reordered({"a": one})))
    if repr(canon(one)) != repr(canon(two)):
        assert key != call_key(name, freeze({"a": two}))


# --- leniency --------------------------------------------------------------------------------------


@given(json_values)
def test_putting_right_twice_is_putting_right_once(data: Any) -> None:
    schema = everything.parameters.whole.schema
    once = normalise(schema, data)

    assert repr(normalise(schema, once)) == repr(once)


@given(good_arguments)
def test_what_is_right_is_left_alone(given_: dict[str, Any]) -> None:
    schema = everything.parameters.whole.schema

    assert find_problems(schema, given_) == ()
    assert repr(normalise(schema, given_)) == repr(given_)


@given(st.integers(-(10**12), 10**12), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_a_value_written_as_text_is_that_value(count: int, ratio: float, flag: bool) -> None:
    @tool
    def take(count: int, ratio: float, flag: bool) -> Any:
        """Take."""
        return count, ratio, flag

    written = {"count": json.dumps(count), "ratio": json.dumps(ratio), "flag": json.dumps(flag)}

    assert bound(written, take).call() == (count, ratio, flag)
    assert bound(written, take).key == bound({"count": count, "ratio": ratio, "flag": flag}, take).key


# --- results, names, answers -----------------------------------------------------------------------


class Hostile:
    """Everything about it raises."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error

    __str__ = __repr__

    def model_dump(self, mode: str) -> Any:
        raise self.error


results = st.recursive(
    atoms
    | st.binary(max_size=4)
    | st.dates()
    | st.builds(Hostile, st.sampled_from([ValueError, RecursionError, MemoryError])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(atoms | st.binary(max_size=2), inner, max_size=3)
        | st.builds(Place, texts, inner, inner)
        | st.builds(lambda v: RetryableToolError(v), inner)
    ),
    max_leaves=6,
)


@given(results, st.integers(200, 400))
def test_a_result_is_always_text_of_a_bounded_size(value: Any, limit: int) -> None:
    text = result_text(value, limit)

    assert len(text) <= limit
    text.encode()
    content = result_content(value)
    assert isinstance(content, str)
    content.encode()


@given(results)
def test_an_exception_is_always_told(value: Any) -> None:
    text = error_text(ValueError(value))

    assert text.startswith("ValueError: ")
    assert len(text) > len("ValueError: ")
    text.encode()


@given(texts | st.text(min_size=200, max_size=300))
def test_any_unknown_name_gets_an_answer(name: str) -> None:
    text = REGISTRY.unknown(name)

    assert "everything, simple" in text
    text.encode()


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from('{}[]"`\n:,')))
def test_any_text_is_an_answer_or_a_typed_error(text: str) -> None:
    for kind in (Place, list[Place], Guest, dict[str, int]):
        told: OutputError | None = None
        try:
            output_schema(kind).parse(text)
        except OutputError as e:
            told = e
        assert told is None or (told.problems and str(told).encode())


finite_places = st.fixed_dictionaries({"city": texts}, optional={"radius": st.floats(-9, 9)})


@given(finite_places, st.text(st.characters(exclude_characters="{}[]`"), max_size=20))
def test_an_answer_is_found_between_words(place: dict[str, Any], words: str) -> None:
    expected = output_schema(Place).parse(place)

    for text in (f"{words}{json.dumps(place)}{words}", f"{words}\n```json\n{json.dumps(place)}\n```\n{words}"):
        assert output_schema(Place).parse(text) == expected
