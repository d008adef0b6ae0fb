"""Tools from files and modules: which functions become tools, and what is said of a file that cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from locus.core.errors import ConfigError, ToolDefinitionError
from locus.tools import Bound
from locus_kit.loading import load_tools


@pytest.fixture(autouse=True)
def _unchanged_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write_tools(folder: Path, source: str, name: str = "my_tools.py") -> str:
    file = folder / name
    file.write_text(dedent(source), encoding="utf-8")
    return str(file)


def test_a_file_gives_the_tools_it_marks_and_no_other_function(tmp_path: Path) -> None:
    file = write_tools(
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
    file = write_tools(
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
    (before,) = load_tools(write_tools(tmp_path, 'def one() -> str:\n    """One."""\n    return "1"\n'))
    (after,) = load_tools(write_tools(tmp_path, 'def another() -> str:\n    """Other."""\n    return "another"\n'))

    assert (before.name, after.name) == ("one", "another")
    assert before() == "1"


def test_a_module_is_loaded_by_its_dotted_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_package").mkdir()
    write_tools(tmp_path, 'def greet() -> str:\n    """Greet."""\n    return "hi"\n', "a_package/greetings.py")
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
        load_tools(write_tools(tmp_path, source))

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_file.py", "file not found: 'no_such_file.py'"),
        (f"{Path(__file__).parent}/", "is a folder; name a file in it that ends in .py"),
        ("a/folder", "file not found: 'a/folder'"),
        ("no\0file.py", "cannot read 'no\\x00file.py': ValueError"),
        ("x" * 5000 + ".py", "cannot read 'xxx"),
        (
            "no_such_module",
            "module 'no_such_module' was not found; is it installed, or the file no_such_module.py?",
        ),
        ("locus.tools.nothing", "module 'locus.tools.nothing' was not found"),
        ("not a module", "neither a file that ends in .py nor the dotted name"),
        ("", "neither a file"),
    ],
    ids=["file", "existing folder", "folder", "NUL", "long", "module", "submodule", "words", "empty"],
)
def test_missing_file_or_module_is_named(reference: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_tools(reference)

    assert message in str(caught.value)


def test_file_that_is_not_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        load_tools(write_tools(tmp_path, "x", "tools.txt"))

    assert "must end in .py" in str(caught.value)
