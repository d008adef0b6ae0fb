"""The order of plugins: a topological one, and the same one every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.errors import PluginError
from locus.plugins.activation import order_plugins

NAMES = st.sampled_from("abcdefgh")


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    """Names that come after others; drawn along a hidden order, so there is no circle."""
    names = draw(st.lists(NAMES, unique=True, min_size=1))
    return {name: draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else [] for i, name in enumerate(names)}


@given(acyclic(), st.lists(NAMES, unique=True))
def test_whatever_comes_after_something_does_so(after: dict[str, list[str]], configured: list[str]) -> None:
    order = order_plugins(after, configured)

    assert sorted(order) == sorted(after)
    assert all(order.index(earlier) < order.index(name) for name in after for earlier in after[name])


@given(acyclic(), st.lists(NAMES, unique=True), st.randoms())
def test_the_order_does_not_depend_on_how_the_names_are_handed_in(
    after: dict[str, list[str]], configured: list[str], random: st.DataObject
) -> None:
    items = list(after.items())
    random.shuffle(items)  # type: ignore[attr-defined]

    assert order_plugins(dict(items), configured) == order_plugins(after, configured)


@given(st.lists(NAMES, unique=True), st.lists(NAMES, unique=True))
def test_without_constraints_the_configured_order_holds_and_the_name_decides_the_rest(
    names: list[str], configured: list[str]
) -> None:
    wanted = [name for name in configured if name in names]

    assert order_plugins(dict.fromkeys(names, ()), configured) == (*wanted, *sorted(set(names) - set(wanted)))


def test_what_is_not_there_does_not_hold_anybody_up() -> None:
    assert order_plugins({"audit": ["absent"]}) == ("audit",)


def test_a_circle_is_refused_and_shown_without_those_who_merely_wait_for_it() -> None:
    after = {"a": ["c"], "b": ["a"], "c": ["b"], "waits": ["a"], "free": ()}

    with pytest.raises(PluginError, match="circular: a after c after b after a"):
        order_plugins(after)


def test_a_plugin_that_comes_after_itself_is_a_circle() -> None:
    with pytest.raises(PluginError, match="circular: a after a"):
        order_plugins({"a": ["a"]})
