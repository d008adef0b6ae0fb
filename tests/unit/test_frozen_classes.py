"""`locus.core.frozen.frozen`: the classes that it makes compare, hash, show and copy as those of attrs do."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import lt
from typing import Any, ClassVar

import attrs
import pytest
from attrs import field

from locus.core.errors import LocusError
from locus.core.frozen import fast_init, frozen, maker

NAN = float("nan")


class Plain:
    a: int
    b: float = field(default=0.0, repr=False)
    c: str = field(default="", eq=str.lower)
    d: list[int] = field(factory=list, eq=False)
    e: str = field(default="", repr=str.upper)


class Single:
    a: float


class Empty:
    pass


class OwnText:
    a: int = 0

    def __repr__(self) -> str:
        return "own"


class OwnHash:
    a: int = 0

    def __hash__(self) -> int:
        return 7


class OwnEquality:
    a: int = 0

    def __eq__(self, other: object) -> bool:
        return other == 3


class Unhashed:
    a: int = 0
    b: list[int] = field(factory=list, hash=False)


def both(cls: type, **options: Any) -> tuple[Any, Any]:
    """The class as attrs makes it, and as the kernel does."""
    space = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    theirs, ours = type(cls.__name__, (), dict(space)), type(cls.__name__, (), dict(space))
    return attrs.frozen(theirs, **options), frozen(**options)(ours) if options else frozen(ours)


CASES: list[tuple[type, dict[str, Any], list[tuple[Any, ...]]]] = [
    (Plain, {}, [(1,), (1, 2.0), (1, NAN), (1, 0.0, "X"), (1, 0.0, "x"), (1, 0.0, "", [1]), (1, 0.0, "", [], "y")]),
    (Single, {}, [(1.0,), (1,), (NAN,), ("1",)]),
    (Empty, {}, [()]),
    (OwnText, {}, [(1,), (2,)]),
    (OwnHash, {}, [(1,), (2,)]),
    (OwnEquality, {}, [(1,), (2,)]),
    (Unhashed, {}, [(1, [2]), (1, [3])]),
    (Single, {"eq": False}, [(1.0,)]),
    (Single, {"repr": False}, [(1.0,)]),
    (Single, {"order": True}, [(1.0,), (2.0,)]),
    (Single, {"unsafe_hash": False}, [(1.0,)]),
]


def attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except TypeError as e:
        return str(e)


@pytest.mark.parametrize(
    ("cls", "options", "arguments"), CASES, ids=[f"{cls.__name__}{''.join(options)}" for cls, options, _ in CASES]
)
def test_values_compare_hash_and_show_as_with_attrs(
    cls: type, options: dict[str, Any], arguments: list[tuple[Any, ...]]
) -> None:
    theirs, ours = both(cls, **options)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    for one in arguments:
        if options.get("repr", True):
            assert repr(ours(*one)) == repr(theirs(*one))
        assert type(attempt(hash, ours(*one))) is type(attempt(hash, theirs(*one)))
        for other in arguments:
            if any(value is NAN for value in (*one, *other)):
                continue  # an object that is not equal to itself
            assert (ours(*one) == ours(*other)) == (theirs(*one) == theirs(*other))
            assert (ours(*one) != ours(*other)) == (theirs(*one) != theirs(*other))
            if ours(*one) == ours(*other):
                assert attempt(hash, ours(*one)) == attempt(hash, ours(*other))
            assert attempt(lt, ours(*one), ours(*other)) == attempt(lt, theirs(*one), theirs(*other))


@frozen
class Point:
    x: int
    y: int = 0


@frozen
class Deeper(Point):
    z: int = 0


def test_a_value_is_frozen_has_slots_and_survives_a_pickle() -> None:
    point = Deeper(1, 2, 3)

    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == attrs.evolve(point) == point
    assert not hasattr(point, "__dict__")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3  # type: ignore[misc]


def test_a_value_is_not_equal_to_one_of_another_class() -> None:
    assert Point(1, 2) != Deeper(1, 2)
    assert Deeper(1, 2) != Point(1, 2)
    assert len({Point(1, 2), Point(1, 2), Deeper(1, 2)}) == 2
    assert repr(Deeper(1, 2)) == "Deeper(x=1, y=2, z=0)"


def test_an_error_is_compared_by_identity_as_errors_are() -> None:
    @frozen
    class Broken(LocusError):
        text: str

    assert Broken("a") != Broken("a")
    assert str(Broken("a")) == "a"


def unfinished(cls: type) -> bool:
    return type(vars(cls)["__init__"]).__name__ == "_Added"


def lower(text: str) -> str:
    return text.lower()


def made() -> Any:
    """A class that nothing was asked of yet."""

    @frozen(kw_only=True)
    class Made(Point):
        """A class."""

        kind: ClassVar[str] = "made"

        name: str = field(converter=lower)
        z: int = field(default=0, kw_only=False)

    return Made


@pytest.mark.parametrize(
    "ask",
    [
        lambda cls: cls(1, name="A"),
        attrs.fields,
        inspect.signature,
        lambda cls: cls.__match_args__,
        lambda cls: cls.__init__,
        lambda cls: attrs.frozen(type("Sub", (cls,), {"__annotations__": {"w": int}, "w": 0})),
    ],
    ids=["made one", "its fields", "its signature", "matched", "its constructor", "derived from"],
)
def test_a_class_is_finished_when_it_is_first_asked_for_what_attrs_makes(ask: Callable[[Any], Any]) -> None:
    cls = made()
    assert unfinished(cls)

    ask(cls)

    assert not unfinished(cls)
    assert cls(1, 2, 3, name="A") == cls(x=1, y=2, z=3, name="a")
    assert [a.name for a in attrs.fields(cls)] == ["x", "y", "name", "z"]
    assert cls.__match_args__ == ("x", "y", "z")
    assert str(inspect.signature(cls)) == "(x: 'int', y: 'int' = 0, z: 'int' = 0, *, name: 'str') -> None"
    assert cls.kind == "made"
    assert cls.__doc__ == "A class."


def test_a_subclass_that_attrs_did_not_make_is_made_like_its_base() -> None:
    class Sub(made()):  # type: ignore[misc]
        pass

    class Calling(made()):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(1, name="A")

    assert (Sub(1, name="A").x, Calling().name) == (1, "a")
    assert Sub(1, name="A") == Sub(1, name="a")


def test_a_class_whose_methods_use_super_is_one_class() -> None:
    @frozen
    class Speaking(Point):
        def __attrs_post_init__(self) -> None:
            assert super().x == self.x

        def kind(self) -> type:
            return __class__  # type: ignore[name-defined, no-any-return]

    assert Speaking(1).kind() is Speaking


def test_threads_may_be_the_first_to_make_one_at_once() -> None:
    for _ in range(20):
        cls = made()
        with ThreadPoolExecutor(8) as pool:
            assert len({pool.submit(cls, n % 3, name="A").result() for n in range(24)}) == 3


def test_a_mistake_in_a_call_is_what_attrs_says_it_is() -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'w'"):
        made()(1, w=2)
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required keyword-only argument: 'name'"):
        made()(1)


class Base:
    a: int
    b: tuple[int, ...] = field(default=(), converter=tuple)


class Kinds:
    """One field of each kind."""

    c: str = field(default="D", converter=lower)
    d: dict[str, int] = field(factory=dict)
    e: list[int] = field(factory=lambda: [1], converter=tuple, kw_only=True)
    f: int = field(default=3, init=False)
    g: int = field(factory=int, init=False)
    _h: int = 4
    i: int = field(default=5, kw_only=True)
    b: tuple[int, ...] = field(default=(6,), converter=tuple)
    total: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "total", self.f + self._h + self.i)


class Checked(Kinds):
    j: int = field(default=1, validator=attrs.validators.ge(1))


class Named(Kinds):
    k: int = field(default=1, alias="other")


class Computed(Kinds):
    m: int = field(default=attrs.Factory(lambda self: self.i, takes_self=True))


def chained(*classes: type, by: Callable[..., Any], **options: Any) -> Any:
    """The classes with the decorator, each derived from the one before."""
    made: type = object
    for cls in classes:
        space = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        made = by(**options)(type(cls.__name__, (made,), space))
    return made


@pytest.mark.parametrize("options", [{}, {"kw_only": True}], ids=["in order", "by name"])
@pytest.mark.parametrize(
    "classes",
    [(Kinds,), (Base, Kinds), (Base, Kinds, Checked), (Base, Kinds, Named), (Base, Kinds, Computed)],
    ids=lambda classes: classes[-1].__name__ + str(len(classes)),
)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"d": {"x": 1}, "e": [2, 3], "h": 7, "i": 8, "c": "E"},
        {"b": [1]},
        {"f": 1},
        {"j": 0},
        {"other": 2},
        {"m": 1},
    ],
    ids=lambda given: "".join(given),
)
def test_an_instance_is_made_of_its_arguments_as_with_attrs(
    classes: tuple[type, ...], options: dict[str, Any], given: dict[str, Any]
) -> None:
    def outcome(by: Callable[..., Any]) -> Any:
        cls = chained(*classes, by=by, **options)
        try:
            value = cls(**({"a": 1} if Base in classes else {}), **given)
        except (TypeError, ValueError) as e:
            return type(e), re.sub(r"<class '[^']*'>", "", str(e.args[0]))
        return {name: getattr(value, name) for name in (a.name for a in attrs.fields(cls))}, inspect.signature(cls)

    assert outcome(frozen) == outcome(attrs.frozen)


def test_the_first_instance_leaves_the_description_of_the_class_to_its_first_use() -> None:
    cls = chained(Base, Kinds, by=frozen)
    cls(1)

    assert not unfinished(cls)
    assert type(vars(cls)["__attrs_attrs__"]).__name__ == "_Added"
    assert [a.name for a in attrs.fields(cls)] == ["a", "c", "d", "e", "f", "g", "_h", "i", "b", "total"]
    assert vars(cls)["__init__"](cls(1), 2) is None


class Fast:
    a: int
    b: tuple[int, ...] = field(default=(), converter=tuple)
    c: str = field(default="D", converter=lower, kw_only=True)
    d: list[int] = field(factory=list)
    e: int = field(default=-3, converter=abs, init=False)
    _f: int = 4


@pytest.mark.parametrize("make", [lambda cls: cls, maker], ids=["called", "made by a function"])
@pytest.mark.parametrize("options", [{}, {"kw_only": True}], ids=["in order", "by name"])
@pytest.mark.parametrize(
    "given",
    [{"a": 1}, {"a": 1, "b": [2], "c": "E", "d": [3], "f": 5}, {}, {"a": 1, "e": 2}, {"a": 1, "b": 2}],
    ids=lambda given: "".join(given),
)
def test_an_instance_is_made_fast_of_its_arguments_as_with_attrs(
    make: Callable[[Any], Any], options: dict[str, Any], given: dict[str, Any]
) -> None:
    theirs = chained(Base, Fast, by=attrs.frozen, **options)
    ours = fast_init(chained(Base, Fast, by=frozen, **options))
    try:
        expected = theirs(**given)
    except TypeError:
        with pytest.raises(TypeError):
            make(ours)(**given)
        return

    value = make(ours)(**given)

    assert type(value) is ours
    assert attrs.asdict(value) == attrs.asdict(expected)
    assert repr(value) == repr(expected)
    assert pickle.loads(pickle.dumps(FastPoint(1, y=2))) == FastPoint(1, y=2) == maker(FastPoint)(1, 2)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.a = 2


@fast_init
@frozen
class FastPoint:
    x: int
    y: int = 0


def test_a_subclass_of_a_class_that_is_made_fast_is_made_like_any_other() -> None:
    class Sub(FastPoint):
        pass

    @frozen
    class Made(FastPoint):
        z: int = 0

    assert (type(Sub(1)), Sub(1).y, Made(1, 2, 3).z) == (Sub, 0, 3)
    assert str(inspect.signature(FastPoint)) == "(x: 'int', y: 'int' = 0) -> None"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Sub(1).x = 2  # type: ignore[misc]


@pytest.mark.parametrize("cls", [Kinds, Checked, Named, Computed])
def test_a_class_that_does_more_than_set_fields_is_not_made_fast(cls: type) -> None:
    with pytest.raises(TypeError, match="leave its __init__ to attrs"):
        fast_init(chained(cls, by=frozen))
    with pytest.raises(TypeError, match="leave its __init__ to attrs"):
        fast_init(chained(Fast, by=attrs.frozen))
