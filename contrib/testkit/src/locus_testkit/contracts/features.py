"""Optional features: a promise of one is collected only for classes that declare it.

A test that cannot apply to a class is not one of its tests. Skipping it would hide, among many, the skip that matters;
so it is deselected, and the summary says once a class what was not declared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from locus.core.errors import closest

__all__ = ["FeatureUnknown", "check_features", "missing_features", "needs"]

_Test = TypeVar("_Test", bound=Callable[..., Any])

#: Where a test keeps the names of the features that it is about.
_NEEDS = "__locus_needs__"


class FeatureUnknown(TypeError):
    """A promise needs a feature that no class could declare, or ``features`` cannot declare any.

    Args:
        cls: the contract, or the subclass of one.
        problem: what is wrong with it.
        feature: the name that nothing answers to, if that is the problem.
        known: the features that could be declared.
    """

    def __init__(self, cls: type, problem: str, feature: str = "", known: tuple[str, ...] = ()) -> None:
        self.cls, self.feature, self.known = cls, feature, known
        super().__init__(f"{cls.__qualname__}{problem}")


def needs(*names: str) -> Callable[[_Test], _Test]:
    """Mark a promise of optional features: only a class whose ``features`` declare all of them is asked for it.

    An override, such as an expected failure, needs what the promise needs and does not say it again.

    Args:
        names: fields of the contract's ``features``; a misspelled one is refused when the contract is imported.

    Raises:
        TypeError: no name is given, or something else than names.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f'needs{names!r} names no feature; write @needs("streaming")')

    def mark(test: _Test) -> _Test:
        setattr(test, _NEEDS, (*names, *getattr(test, _NEEDS, ())))
        return test

    return mark


def missing_features(cls: type, test: str) -> tuple[str, ...]:
    """The features that a test of a class needs, and that the class does not declare; sorted.

    Args:
        cls: a subclass of `Contract`.
        test: the name of the method.
    """
    features = getattr(cls, "features", None)
    return tuple(sorted(name for name in _needed_features(cls, test) if not getattr(features, name)))


def check_features(cls: type) -> None:
    """Refuse names of features that do not exist, before any test is collected.

    Raises:
        FeatureUnknown: a promise needs a feature that ``features`` has no field for, or ``features`` is not an
            instance of an attrs class.
    """
    features = getattr(cls, "features", None)
    if features is not None and (isinstance(features, type) or not attrs.has(type(features))):
        raise FeatureUnknown(cls, f".features must be an instance like StoreFeatures(delete=False), got {features!r}")
    known = () if features is None else tuple(each.name for each in attrs.fields(type(features)))
    for test in dir(cls):
        for name in _needed_features(cls, test) - set(known):
            near = closest(name, known)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(known) or 'none'}"
            raise FeatureUnknown(cls, f".{test} needs the feature {name!r}, which is unknown; {hint}", name, known)


def _needed_features(cls: type, test: str) -> set[str]:
    return {name for base in cls.__mro__ for name in getattr(vars(base).get(test), _NEEDS, ())}
