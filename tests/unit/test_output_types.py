"""Every kind of class that an answer may be, with every kind of field: schema, value, default and fault."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NotRequired, Optional, TypedDict, TypeVar, get_origin
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest

from locus.models.output import OutputError, output_schema
from locus.schema.checking import find_problems
from locus_wire import NotStrict, strict_schema

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class _Missing(Enum):
    MISSING = 1


MISSING = _Missing.MISSING
Fields = dict[str, tuple[Any, Any]]


def attrs_class(name: str, fields: Fields) -> Any:
    made = {n: attrs.field(type=t) if d is MISSING else attrs.field(type=t, default=d) for n, (t, d) in fields.items()}
    return attrs.make_class(name, made, frozen=True)


def dataclass(name: str, fields: Fields) -> Any:
    return dataclasses.make_dataclass(name, [(n, t) if d is MISSING else (n, t, d) for n, (t, d) in fields.items()])


def typed_dict(name: str, fields: Fields) -> Any:
    make: Any = TypedDict
    return make(name, {n: t if d is MISSING else NotRequired[t] for n, (t, d) in fields.items()})


def struct(name: str, fields: Fields) -> Any:
    return msgspec.defstruct(name, [(n, t) if d is MISSING else (n, t, d) for n, (t, d) in fields.items()])


def model(name: str, fields: Fields) -> Any:
    make: Any = pydantic.create_model
    return make(name, **{n: (t, ... if d is MISSING else d) for n, (t, d) in fields.items()})


Make = Callable[[str, Fields], Any]
KINDS: dict[str, Make] = {
    "attrs": attrs_class, "dataclass": dataclass, "TypedDict": typed_dict, "msgspec": struct, "pydantic": model,
}  # fmt: skip

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")
DATA = {"name": "a", "size": 2}

#: name: annotation, default, JSON, value, a wrong JSON; functions of the nested classes where it has some.
PLAIN: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "integer or text": (int | str, MISSING, "a", "a", []),
    "enum": (Colour, MISSING, "red", Colour.RED, "green"),
    "integer enum": (Size, MISSING, 2, Size.LARGE, 3),
    "literal": (Literal["a", "b"], MISSING, "a", "a", "c"),
    "mixed literal": (Literal["a", 1], MISSING, 1, 1, 2),
    "datetime": (datetime, MISSING, "2026-01-02T03:04:05Z", AT, "soon"),
    "date": (date, MISSING, "2026-01-02", date(2026, 1, 2), "soon"),
    "time": (time, MISSING, "03:04:05", time(3, 4, 5), "soon"),
    "duration": (timedelta, MISSING, "PT3S", timedelta(seconds=3), "soon"),
    "uuid": (UUID, MISSING, str(ID), ID, "x"),
    "decimal": (Decimal, MISSING, "1.5", Decimal("1.5"), "x"),
    "datetimes": (list[datetime], MISSING, ["2026-01-02T03:04:05Z"], [AT], ["soon"]),
    "enums": (list[Colour], MISSING, ["red", "blue"], [Colour.RED, Colour.BLUE], ["green"]),
    "pair": (tuple[int, str], MISSING, [1, "a"], (1, "a"), [1]),
    "tuple": (tuple[int, ...], MISSING, [1, 2], (1, 2), ["a"]),
    "set": (set[int], MISSING, [1, 2], {1, 2}, ["a"]),
    "boolean": (bool, MISSING, True, True, "maybe"),
    "number": (float, MISSING, 1.5, 1.5, "x"),
    "default": (int, 3, 4, 4, "x"),
    "optional": (Optional[int], None, None, None, "x"),  # noqa: UP045  as users write it
    "anything": (Any, MISSING, {"a": [1]}, {"a": [1]}, MISSING),
}


def nested(inner: Any, other: Any, of: Callable[..., Any]) -> dict[str, tuple[Any, Any, Any, Any, Any]]:
    one, no = of(inner, **DATA), of(other, reason="no")
    return {
        "nested": (inner, MISSING, DATA, one, {"name": 1}),
        "nested, if there": (inner | None, None, DATA, one, {"size": 1}),
        "nested, not there": (inner | None, None, None, None, {"size": 1}),
        "list of nested": (list[inner], MISSING, [DATA, DATA], [one, one], [{"name": 1}]),
        "map of nested": (dict[str, inner], MISSING, {"k": DATA}, {"k": one}, {"k": 1}),
        "union": (inner | other, MISSING, {"reason": "no"}, no, {"x": 1}),
        "list of a union": (list[inner | other], MISSING, [DATA, {"reason": "no"}], [one, no], [3]),
        "map of a union": (dict[str, inner | other], MISSING, {"k": {"reason": "no"}}, {"k": no}, {"k": 3}),
        "text or nested": (str | inner, MISSING, DATA, one, 3),
    }


def cases() -> Iterator[Any]:
    for kind, make in KINDS.items():

        def of(cls: Any, kind: str = kind, **fields: Any) -> Any:
            return fields if kind == "TypedDict" else cls(**fields)

        inner = make("Inner", {"name": (str, MISSING), "size": (int, 1)})
        other = make("Other", {"reason": (str, MISSING)})
        for name, case in {**PLAIN, **nested(inner, other, of)}.items():
            yield pytest.param(kind, make, *case, id=f"{kind}-{name}")


def get(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


@pytest.mark.parametrize(("kind", "make", "annotation", "default", "data", "value", "wrong"), list(cases()))
def test_every_field_of_every_kind_of_class(
    kind: str, make: Make, annotation: Any, default: Any, data: Any, value: Any, wrong: Any
) -> None:
    cls = make("Answer", {"it": (annotation, default)})
    schema = output_schema(cls)

    found = schema.parse(json.dumps({"it": data}))
    assert isinstance(found, dict if kind == "TypedDict" else cls)
    assert (get(found, "it"), type(get(found, "it"))) == (value, type(value))
    assert not find_problems(schema.spec.schema, {"it": data})
    if default is not MISSING and kind != "TypedDict":
        assert schema.parse("{}").it == default
    if wrong is not MISSING:
        with pytest.raises(OutputError, match="it"):
            schema.parse(json.dumps({"it": wrong}))
    if annotation is Any or get_origin(annotation) is dict:
        with pytest.raises(NotStrict, match=r"any keys|any type"):
            strict_schema(schema.spec.schema)
    else:
        assert not find_problems(strict_schema(schema.spec.schema), {"it": data})


# -- classes that hold themselves -----------------------------------------------------------------


@attrs.frozen
class AttrsLeaf:
    n: int = attrs.field(validator=attrs.validators.gt(0))


@attrs.frozen
class AttrsTree:
    kids: tuple[AttrsTree | AttrsLeaf, ...] = attrs.field(converter=tuple)


@dataclasses.dataclass
class DataLeaf:
    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError("n must be > 0")


@dataclasses.dataclass
class DataTree:
    kids: list[DataTree | DataLeaf]


class DictLeaf(TypedDict):
    n: Annotated[int, msgspec.Meta(gt=0)]


class DictTree(TypedDict):
    kids: list[DictTree | DictLeaf]


class StructLeaf(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(gt=0)]


class StructTree(msgspec.Struct):
    kids: list[StructTree | StructLeaf]
    label: str = msgspec.field(default="tree", name="called")
    seen: set[str] = msgspec.field(default_factory=set)


class ModelLeaf(pydantic.BaseModel):
    n: int = pydantic.Field(gt=0)


class ModelTree(pydantic.BaseModel):
    kids: list[ModelTree | ModelLeaf]


TREES = [
    (AttrsTree, AttrsLeaf), (DataTree, DataLeaf), (DictTree, DictLeaf), (StructTree, StructLeaf),
    (ModelTree, ModelLeaf),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "leaf"), TREES, ids=lambda cls: cls.__name__)
def test_a_class_that_holds_itself_in_a_union(tree: Any, leaf: Any) -> None:
    schema = output_schema(tree)
    found = schema.parse('{"kids": [{"n": 1}, {"kids": [{"n": 2}, {"kids": []}]}]}')
    first, second = get(found, "kids")
    assert (get(first, "n"), get(get(second, "kids")[0], "n")) == (1, 2)
    if leaf is not DictLeaf:
        assert [type(each) for each in (found, first, second)] == [tree, leaf, tree]
    with pytest.raises(OutputError):
        schema.parse('{"kids": [{"kids": [{"n": 0}]}]}')
    assert schema.spec.schema["properties"].keys() >= {"kids"}
    named = set(schema.spec.schema.get("$defs", {}))
    # pydantic writes its own schema, and a leaf that stands in one place into that place
    assert named == {tree.__name__} | (set() if tree is ModelTree else {f"{tree.__name__}_{leaf.__name__}"})
    strict = strict_schema(schema.spec.schema)
    filled = dict.fromkeys(strict["properties"]) | {"kids": [{"n": 1}]}
    assert not find_problems(strict, filled)
    assert find_problems(strict, filled | {"kids": [3]})
    assert get(output_schema(list[tree]).parse('[{"kids": []}]')[0], "kids") in ([], ())


def test_a_struct_keeps_its_own_names_and_defaults() -> None:
    found = output_schema(StructTree).parse('{"called": "oak", "kids": [{"n": 3}]}')
    assert found == StructTree([StructLeaf(3)], "oak", set())
    assert output_schema(StructTree).parse('{"kids": []}') == StructTree([])
    assert output_schema(StructTree).spec.schema["properties"]["called"]["default"] == "tree"


def test_tagged_structs_are_chosen_by_their_tags() -> None:
    class Cat(msgspec.Struct, tag="cat"):
        name: str

    class Dog(msgspec.Struct, tag="dog"):
        name: str

    class Pets(msgspec.Struct):
        all: list[Cat | Dog]

    found = output_schema(Pets).parse('{"all": [{"type": "dog", "name": "a"}, {"type": "cat", "name": "b"}]}')
    assert found == Pets([Dog("a"), Cat("b")])


def test_classes_of_a_function_may_name_each_other() -> None:
    class Outer(msgspec.Struct):
        inner: Inner | int
        more: list[Inner] = []

    class Inner(msgspec.Struct):
        n: int

    class Row(TypedDict):
        cell: NotRequired[Cell]

    class Cell(TypedDict):
        n: int

    assert output_schema(Outer).parse('{"inner": {"n": 1}}') == Outer(Inner(1))
    assert output_schema(Row).parse('{"cell": {"n": 1}}') == {"cell": {"n": 1}}


def test_kinds_may_hold_each_other() -> None:
    class Line(TypedDict):
        leaf: AttrsLeaf | StructLeaf | None
        model: ModelLeaf

    @attrs.frozen
    class Page:
        lines: list[Line]
        tree: DataTree

    found = output_schema(Page).parse(
        '{"lines": [{"leaf": {"n": 1}, "model": {"n": 2}}], "tree": {"kids": [{"n": 3}]}}'
    )
    assert found == Page([{"leaf": AttrsLeaf(1), "model": ModelLeaf(n=2)}], DataTree([DataLeaf(3)]))


# -- generic classes ------------------------------------------------------------------------------


@attrs.frozen
class AttrsBox(Generic[T]):
    held: T


@dataclasses.dataclass
class DataBox(Generic[T]):
    held: T


class DictBox(TypedDict, Generic[T]):
    held: T


class StructBox(msgspec.Struct, Generic[T]):
    held: T


class ModelBox(pydantic.BaseModel, Generic[T]):
    held: T


@pytest.mark.parametrize("box", [AttrsBox, DataBox, DictBox, StructBox, ModelBox])
def test_generic_classes_hold_what_they_are_given(box: Any) -> None:
    assert get(output_schema(box[int]).parse('{"held": 1}'), "held") == 1
    assert get(output_schema(box[str | None]).parse('{"held": null}'), "held") is None
    assert get(output_schema(box[ModelLeaf]).parse('{"held": {"n": 1}}'), "held") == ModelLeaf(n=1)
    with pytest.raises(OutputError, match="held"):
        output_schema(box[int]).parse('{"held": "x"}')


@pytest.mark.parametrize("leaf", [leaf for _, leaf in TREES], ids=lambda cls: cls.__name__)
def test_constraints_hold_wherever_they_are_said(leaf: Any) -> None:
    assert get(output_schema(leaf).parse('{"n": 1}'), "n") == 1
    with pytest.raises(OutputError, match=r"> 0|greater than 0"):
        output_schema(leaf).parse('{"n": 0}')


_WITHOUT = """
import sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = None  # importing them fails, as where they are not installed
import dataclasses, typing
import attrs, msgspec
from locus.models.output import output_schema
class T(typing.TypedDict):
    n: int
kinds = [attrs.make_class("A", {"n": attrs.field(type=int)}), dataclasses.make_dataclass("D", [("n", int)]), T]
kinds.append(msgspec.defstruct("S", [("n", int)]))
for kind in kinds:
    found = output_schema(kind).parse('{"n": 1}')
    print(found["n"] if kind is T else found.n)
"""


def test_pydantic_is_needed_for_its_own_classes_alone() -> None:
    """It belongs to whoever has it: nothing here imports it."""
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["1"] * 4, "")
