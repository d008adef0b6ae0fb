"""The collection of an agent's tools: from every kind of source, without two of one name."""

from __future__ import annotations

import types
from typing import Any

import pytest

from locus.core.errors import ToolDefinitionError
from locus.tools import Bound, ToolRegistry, tool


@tool
def search(query: str) -> str:
    """Search."""
    return query


def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


@tool(name="book-room")
async def book(room: str) -> str:
    """Book a room."""
    return room


class Shop:
    """A toolbox: its marked methods are tools, the others are not."""

    def __init__(self, city: str) -> None:
        self.city = city

    @tool
    def order(self, item: str) -> str:
        """Order."""
        return f"{item} in {self.city}"

    @staticmethod
    @tool
    def hours() -> str:
        """Hours."""
        return "always"

    @tool
    def _private(self) -> None:
        """Not for the model."""

    def helper(self) -> None:
        """No tool."""


class Bigger(Shop):
    """Overrides one tool and adds one."""

    @tool
    def order(self, item: str) -> str:
        """Order more."""
        return f"much {item} in {self.city}"

    @tool
    def pay(self, amount: int) -> None:
        """Pay."""


def test_tools_come_from_every_kind_of_source_and_keep_their_order() -> None:
    module = types.ModuleType("some_tools")
    vars(module).update(book=book, alias=book, helper=weather, _hidden=tool(weather, name="hidden"))

    registry = ToolRegistry.of([search, weather, module, Shop("Ulm"), (tool(weather, name="sky"),)])

    assert registry.names == ("search", "weather", "book-room", "order", "hours", "sky")
    assert [t.name for t in registry] == list(registry.names)
    assert len(registry) == 6
    assert "sky" in registry
    assert registry["search"] is search
    assert registry.get("nothing") is None


@pytest.mark.parametrize(
    "source",
    [search, [search], (search,), ToolRegistry(search), iter([search]), {search}],
    ids=lambda v: type(v).__name__,
)
def test_one_source_may_be_anything_that_holds_tools(source: Any) -> None:
    assert ToolRegistry.of(source).names == ("search",)


def test_no_tools_are_a_registry_too() -> None:
    assert ToolRegistry.of(()).specs == ()


def test_a_toolbox_gives_its_own_tools_bound_to_it() -> None:
    registry = ToolRegistry(Bigger("Rome"))
    bound = registry["order"].bind({"item": "tea"})

    assert set(registry.names) == {"order", "hours", "pay"}
    assert registry["order"].description == "Order more."
    assert isinstance(bound, Bound)
    assert bound.call() == "much tea in Rome"


def test_the_specs_are_the_same_object_each_time() -> None:
    registry = ToolRegistry(search, weather)

    assert registry.specs is registry.specs
    assert [s.name for s in registry.specs] == ["search", "weather"]
    assert registry.specs[0] is search.spec
    assert ToolRegistry.of(registry) is registry


def test_more_tools_make_another_registry() -> None:
    registry = ToolRegistry(search)

    more = registry.with_tools([weather])

    assert more.names == ("search", "weather")
    assert registry.names == ("search",)
    assert registry.with_tools() is registry


def test_two_tools_of_one_name_are_refused_with_both_origins() -> None:
    def search(text: str) -> str:
        """Another one."""
        return text

    with pytest.raises(ToolDefinitionError) as caught:
        ToolRegistry(globals()["search"], search)

    text = str(caught.value)
    assert "two tools are named 'search'" in text
    assert "test_tools_registry.search and" in text
    assert "<locals>.search" in text
    assert 'tool(fn, name="...")' in text


def test_one_tool_given_twice_is_one_tool_unless_its_options_differ() -> None:
    shop = Shop("Ulm")

    assert ToolRegistry(weather, weather, shop.order, shop).names == ("weather", "order", "hours")
    with pytest.raises(ToolDefinitionError):
        ToolRegistry(weather, tool(weather, idempotent=True))
    with pytest.raises(ToolDefinitionError):
        ToolRegistry(Shop("Ulm"), Shop("Bonn"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Shop.order, "tools=[thing.order]"),
        ("tools.py", "pass the function, or the module that holds it"),
        (3, "3 cannot be called"),
        (b"x", "cannot be called"),
        ({"search": search}, "cannot be called"),
        (types.ModuleType("empty"), "the module empty holds no tools"),
        (Shop, "is a class"),
        ([[None]], "None cannot be called"),
    ],
    ids=["method", "text", "number", "bytes", "dict", "module", "class", "None"],
)
def test_what_is_not_a_tool_is_refused(source: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        ToolRegistry(source)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Search", "search"),
        ("serach", "search"),
        ("functions.search", "search"),
        ("functions:search", "search"),
        ("default_api.SEARCH", "search"),
        ("book_room", "book-room"),
        ("bookroom", "book-room"),
        ("functions.wether", "weather"),
        ("\ud800", None),
        ("x" * 100_000, None),
        ("", None),
    ],
)
def test_an_unknown_name_gets_the_closest_and_all_others(name: str, near: str | None) -> None:
    registry = ToolRegistry(search, book, weather)

    text = registry.unknown(name)

    assert registry.nearest(name) == near
    assert text.startswith("UnknownTool: ")
    assert (f"did you mean {near!r}?" in text) == (near is not None)
    assert text.endswith("the tools are: search, book-room, weather")
    assert len(text) < 300
    text.encode()


def test_without_tools_the_model_is_asked_to_answer() -> None:
    assert "no tools are available" in ToolRegistry().unknown("search")


def test_a_long_list_of_tools_is_not_repeated_in_full() -> None:
    registry = ToolRegistry([tool(weather, name=f"weather{i}") for i in range(200)])

    assert "and 160 more" in registry.unknown("x")
