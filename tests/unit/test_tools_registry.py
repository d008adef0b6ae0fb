"""The collection of an agent's tools: from every kind of source, without two of one name, and loaded from files."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from locus.core.errors import ConfigError, ToolDefinitionError
from locus.tools import Bound, ToolRegistry, load_tools, tool


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
        ("tools.py", "load_tools('tools.py')"),
        (3, "3 cannot be called"),
        (b"x", "cannot be called"),
        ({"search": search}, "cannot be called"),
        (types.ModuleType("empty"), "the module empty holds no tools"),
        (Shop, "is a class"),
        ([[None]], "None cannot be called"),
    ],
    ids=["method", "text", "number", "bytes", "dict", "module", "class", "None"],
)
def test_what_is_no_tool_is_refused(source: Any, message: str) -> None:
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
    assert text.startswith("UnknownTool: there is no tool ")
    assert (f"did you mean {near!r}?" in text) == (near is not None)
    assert text.endswith("the tools are: search, book-room, weather")
    assert len(text) < 300
    text.encode()


def test_without_tools_the_model_is_told_to_answer() -> None:
    assert "no tools are available" in ToolRegistry().unknown("search")


def test_a_long_list_of_tools_is_not_repeated_in_full() -> None:
    registry = ToolRegistry([tool(weather, name=f"weather{i}") for i in range(200)])

    assert "and 160 more" in registry.unknown("x")


# --- loading ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _unchanged_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def written(folder: Path, source: str, name: str = "my_tools.py") -> str:
    file = folder / name
    file.write_text(dedent(source), encoding="utf-8")
    return str(file)


def test_a_file_gives_the_tools_it_marks_and_no_other_function(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '''
        from __future__ import annotations
        from dataclasses import dataclass
        from locus.tools import tool
        import my_helper

        @dataclass
        class Where:
            city: str

        @tool(idempotent=True)
        def weather(where: Where) -> str:
            """The weather."""
            return my_helper.text + where.city

        def helper(x: int) -> int:
            """No tool."""
            return x
        ''',
    )
    (tmp_path / "my_helper.py").write_text("text = 'rain in '", encoding="utf-8")

    (loaded,) = load_tools(file)
    bound = loaded.bind({"where": {"city": "Ulm"}})

    assert (loaded.name, loaded.idempotent) == ("weather", True)
    assert isinstance(bound, Bound)
    assert bound.call() == "rain in Ulm"


def test_a_file_that_marks_none_gives_its_documented_public_functions(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '''
        from os.path import join

        def first(x: int) -> int:
            """First."""
            return x

        async def second(x: int) -> int:
            """Second."""
            return x

        def _private(x: int) -> int:
            """Private."""
            return x

        def undocumented(x):
            return x

        if __name__ == "__main__":
            raise SystemExit("run as a program")
        ''',
    )

    assert [t.name for t in load_tools(file)] == ["first", "second"]


def test_a_file_is_read_again_after_it_changed(tmp_path: Path) -> None:
    (before,) = load_tools(written(tmp_path, 'def one() -> str:\n    """One."""\n    return "1"\n'))
    (after,) = load_tools(written(tmp_path, 'def another() -> str:\n    """Other."""\n    return "another"\n'))

    assert (before.name, after.name) == ("one", "another")
    assert before() == "1"


def test_a_module_is_loaded_by_its_dotted_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_package").mkdir()
    written(tmp_path, 'def greet() -> str:\n    """Greet."""\n    return "hi"\n', "a_package/greetings.py")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert [t.name for t in load_tools("a_package.greetings")] == ["greet"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "holds no tools; mark a function with @tool"),
        ("raise KeyError('boom')", "cannot be loaded: KeyError: 'boom'"),
        ("def broken(:", "cannot be loaded: SyntaxError"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        ("x = 1\ny = {}[x]\n", "tools.py, line 2, cannot be loaded: KeyError: 1"),
        ("def f():\n    raise OSError\n\nf()\n", "tools.py, line 2, cannot be loaded: OSError: no message"),
        (
            "from locus import tool\n\n@tool\ndef f(x) -> int:\n    return 1\n",
            "tools.py, line 3, cannot be loaded: f: parameter 'x' has no annotation",
        ),
        ('def f(x):\n    """Doc."""', "parameter 'x' has no annotation"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        load_tools(written(tmp_path, source))

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_file.py", "there is no file 'no_such_file.py'"),
        (f"{Path(__file__).parent}/", "is a folder; name a file in it that ends in .py"),
        ("a/folder", "there is no file 'a/folder'"),
        ("no\0file.py", "there is no file"),
        ("x" * 5000 + ".py", "there is no file"),
        (
            "no_such_module",
            "there is no module 'no_such_module'; is it installed, or is it the file no_such_module.py?",
        ),
        ("locus.tools.nothing", "there is no module 'locus.tools.nothing'"),
        ("not a module", "neither a file that ends in .py nor the dotted name"),
        ("", "neither a file"),
    ],
    ids=["file", "existing folder", "folder", "NUL", "long", "module", "submodule", "words", "empty"],
)
def test_what_is_not_there_is_named(reference: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_tools(reference)

    assert message in str(caught.value)


def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        load_tools(written(tmp_path, "x", "tools.txt"))

    assert "must end in .py" in str(caught.value)
