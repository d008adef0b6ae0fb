"""Names and texts are in the words of the field: functions are verbs, modules are nouns, and errors say what must be.

A function named by a bare participle (``told``, ``kept``) does not say whether it asks, changes or makes something, and
a reader who searches for the behaviour does not find it. What is checked are the names and the texts of sources; the
prompts of models are not, because changing one changes how a model behaves.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, pages

#: Folders whose names and texts are checked, and distributions that are not checked.
CHECKED = ("contrib/*/src", "core/src", "docs", "plugins/*/src")
LEFT_OUT = ("plugins/cli/",)

#: Participles that do not end in -ed.
IRREGULAR = re.compile(
    "begun|bound|broken|brought|built|caught|chosen|drawn|driven|fallen|fed|felt|forgotten|found|given|gone|grown|heard"
    "|held|hidden|kept|known|laid|left|lent|lost|made|meant|met|paid|proven|said|seen|sent|shown|sold|sought|spent"
    "|spoken|stolen|stood|stuck|taken|thought|thrown|told|understood|withdrawn|woken|won|worn|written"
)
#: Verbs and nouns that end in -ed.
VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"})
#: Fixtures of pytest, which are used as the thing that they give.
FIXTURES = frozenset({"scripted"})
#: Names of modules that do not say what is in them.
MODULES = frozenset({"deaths", "heads", "how", "offers", "person", "pulses", "quiet", "soft", "standins"})

#: Phrases that plain English has other words for.
PHRASES = re.compile(
    r"\b(?:is|are|was|were) none\b"
    r"|\b(?:is|are) no (?!longer\b|more\b|less\b|better\b|worse\b)[a-z]"
    r"|\b[Tt]here (?:is|are) (?:no|none)\b"
    r"|\b(?:[Ww]hoever|[Nn]obody|[Ss]omebody)\b"
    r"|\bstands?\b"
    r"|\btells? of\b|\b(?:is|are) told\b"
    r"|\bseen to\b|\ball the same\b|\b(?:[Tt]here is|is no) such\b"
)
#: The same in the names of tests.
NAMES = re.compile(
    r"_(?:is|are)_no_(?!longer_|more_|less_)|_(?:is|are)_(?:none|told)(?:_|$)|_stands?(?:_|$)|whoever|_tells?_of_"
)


def is_participle(name: str) -> bool:
    word = name.strip("_")
    return bool(IRREGULAR.fullmatch(word)) or (re.fullmatch("[a-z]+ed", word) is not None and word not in VERBS)


@cache
def sources() -> tuple[Path, ...]:
    """The tracked modules of the distributions, without their tests and the template of a plugin."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *(f"{folder}/*.py" for folder in CHECKED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines() if "/template/" not in line]
    return tuple(path for path in paths if path.exists() and not str(path.relative_to(ROOT)).startswith(LEFT_OUT))


@cache
def modules_of_tests() -> tuple[Path, ...]:
    """The tracked modules of tests."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "tests/*.py", "contrib/*.py", "plugins/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines() if "/template/" not in line]
    return tuple(path for path in paths if path.exists() and not str(path.relative_to(ROOT)).startswith(LEFT_OUT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions and methods of a module, without properties and what is defined inside of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield node
        else:
            yield from functions(node)


def texts(source: str, *, every: bool = False) -> Iterator[tuple[int, str]]:
    """The comments, docstrings and texts of errors in a module, each with its line.

    Args:
        source: of the module.
        every: all other texts in it as well.
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from enumerate(first.value.value.splitlines(), first.lineno)
        elif every and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


@pytest.mark.parametrize("name", ["told", "_kept", "checked", "withdrawn"])
def test_participles_are_found(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["embed", "read", "emit", "is_closed", "unsupported_media", "exceed"])
def test_verbs_and_longer_names_are_not_participles(name: str) -> None:
    assert not is_participle(name)


def test_functions_are_named_by_verbs() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{function.lineno}: {function.name}"
        for path in sources()
        for function in functions(ast.parse(path.read_text(encoding="utf-8")))
        if is_participle(function.name) and function.name not in FIXTURES
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_are_named_by_nouns() -> None:
    wrong = [str(path.relative_to(ROOT)) for path in sources() if is_participle(path.stem) or path.stem in MODULES]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["the name is none", "there is no file 'x'", "whoever asks", "it stands in the state"])
def test_dialect_is_found(text: str) -> None:
    assert PHRASES.search(text)


def test_texts_that_are_not_raised_are_found_where_all_are_looked_at() -> None:
    source = 'hint = f"there is no tool {name}"\n'
    assert [PHRASES.search(text) is not None for _, text in texts(source, every=True)] == [True]
    assert list(texts(source)) == []


@pytest.mark.parametrize("text", ["it is no longer open", "no file was found", "None is not text"])
def test_plain_english_passes(text: str) -> None:
    assert PHRASES.search(text) is None


def test_texts_are_in_plain_english() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip()}"
        for path in sources()
        # Plugins hold prompts of models, too; the kernel has none.
        for line, text in texts(path.read_text(encoding="utf-8"), every=path.is_relative_to(ROOT / "core"))
        if PHRASES.search(text)
    ]
    assert not wrong, "\n".join(wrong)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that are not in a block, without what is in backticks."""
    is_code = False
    for line, said in enumerate(text.splitlines(), 1):
        is_code ^= said.lstrip().startswith("```")
        if not is_code:
            yield line, re.sub(r"`[^`]*`", "", said)


def test_code_is_not_prose() -> None:
    assert [line for line, _ in prose("a\n```text\nb\n```\nc")] == [1, 4, 5]


def test_pages_are_in_plain_english() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip()}"
        for path in pages()
        for line, text in prose(path.read_text(encoding="utf-8"))
        if PHRASES.search(text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["test_what_is_no_tool_is_refused", "test_a_failure_is_told", "test_it_stands"])
def test_dialect_is_found_in_names_of_tests(name: str) -> None:
    assert NAMES.search(name)


def test_names_of_tests_are_in_plain_english() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{function.lineno}: {function.name}"
        for path in modules_of_tests()
        for function in functions(ast.parse(path.read_text(encoding="utf-8")))
        if function.name.startswith("test_") and NAMES.search(function.name)
    ]
    assert not wrong, "\n".join(wrong)
