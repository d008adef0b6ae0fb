"""Free-form data: text, moments, JSON values, and the wider data that metadata may hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from locus.core import FrozenDict, freeze

__all__ = [
    "TOOLS",
    "arguments",
    "build_once",
    "data",
    "json_values",
    "metadata",
    "moments",
    "texts",
    "tool_names",
]

P = ParamSpec("P")
S = TypeVar("S")


def build_once(fn: Callable[P, S]) -> Callable[P, S]:
    """Build a strategy once for the same arguments: a nested one would otherwise be built at each draw."""
    return cast("Callable[P, S]", cache(fn))


#: Few names, so that conditions, calls and executions meet.
TOOLS = ("search", "book", "submit")


@build_once
def texts(*, max_size: int = 20, surrogates: bool = False) -> SearchStrategy[str]:
    """Text of any script, control characters and NUL included.

    Args:
        max_size: the most characters.
        surrogates: lone surrogates too, which no encoder of UTF-8 accepts.
    """
    if surrogates:
        return st.text(st.characters(), max_size=max_size)
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)


@build_once
def tool_names() -> SearchStrategy[str]:
    """Names of tools: mostly those of `TOOLS`, sometimes an unknown one."""
    return st.sampled_from(TOOLS) | st.sampled_from(TOOLS) | st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)


@build_once
def moments() -> SearchStrategy[datetime]:
    """Moments with a time zone, microseconds included."""
    zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-8))])
    return st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=zones)  # noqa: DTZ001


@build_once
def _floats() -> SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False)


@build_once
def json_values(*, max_leaves: int = 5) -> SearchStrategy[Any]:
    """What JSON itself expresses, as plain dicts and lists."""
    atoms = st.none() | st.booleans() | st.integers() | _floats() | texts()
    return st.recursive(
        atoms,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(max_size=8), inner, max_size=3),
        max_leaves=max_leaves,
    )


@build_once
def _atoms() -> SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        texts(),
        st.binary(max_size=8),
        moments(),
        st.datetimes(),
        st.dates(),
    )


@build_once
def data(*, max_leaves: int = 5) -> SearchStrategy[Any]:
    """Deep-frozen data that the codec carries: any key, sets, bytes, times, infinities, fake tags."""
    keys = texts(max_size=8) | st.sampled_from(["$", "v"]) | st.integers() | st.booleans() | st.tuples(st.integers())

    def containers(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
        return st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(keys, inner, max_size=3),
            st.frozensets(_atoms(), max_size=3),
            st.tuples(inner),
        )

    return st.recursive(_atoms(), containers, max_leaves=max_leaves).map(freeze)


@build_once
def metadata() -> SearchStrategy[FrozenDict[str, Any]]:
    """What ``state.metadata`` may hold."""
    return st.dictionaries(texts(max_size=8), data(), max_size=3).map(freeze)


@build_once
def arguments() -> SearchStrategy[FrozenDict[str, Any]]:
    """Arguments of a tool call: a JSON object, frozen."""
    return st.dictionaries(texts(max_size=8), json_values(), max_size=3).map(freeze)
