"""`locus.core.frozen.frozen`: the classes that it makes compare, hash, show and copy as those of attrs do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from operator import lt
from typing import Any

import attrs
import pytest
from attrs import field

from locus.core.errors import LocusError
from locus.core.frozen import frozen

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
