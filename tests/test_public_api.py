"""What is public is said once, is true, and changes only on purpose."""

from __future__ import annotations

import ast
import difflib
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from tests.public_api import FROZEN, MODULES, listing

import locus
from locus.core import events
from locus.core.directives import Decision, Directive, Verdict
from locus.core.events import Event
from locus.hooks.hook import Hook
from locus.plugins import Catalogue

ROOT = Path(__file__).resolve().parent.parent

# What these modules share with other modules of the kernel and nobody else may import.
KERNEL_ONLY: dict[str, set[str]] = {
    "locus.core.events": {"stamp"},
    "locus.core.termination": {"RunBudget"},
}


def modules() -> Iterator[ModuleType]:
    """Every module of the kernel without an underscore in its path."""
    yield locus
    for found in pkgutil.walk_packages(locus.__path__, "locus."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def tree(module: ModuleType) -> ast.Module:
    assert module.__file__ is not None
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def exported(module: ModuleType) -> list[str]:
    names: list[str] = vars(module).get("__all__", [])
    return names


def defined(module: ModuleType) -> set[str]:
    """The public classes and functions that a module defines itself."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in tree(module).body if isinstance(node, kinds) and not node.name.startswith("_")}


def imported(module: ModuleType) -> dict[str, str]:
    """What a facade shows to type checkers: name -> the module that it comes from."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("locus.")
        for alias in node.names
        if alias.name not in ("exports", "find_missing")
    }


def homes(module: ModuleType) -> dict[str, str] | None:
    """What a facade imports when it is first used, or None where everything is imported at once."""
    table: dict[str, tuple[str, ...]] | None = vars(module).get("_MODULES")
    return None if table is None else {name: home for home, names in table.items() for name in names}


ALL = {module.__name__: module for module in modules()}
LAZY = {name: table for name, module in ALL.items() if (table := homes(module)) is not None}


def test_locus_exports_what_it_offers_and_nothing_else() -> None:
    assert sorted(locus.__all__) == sorted(imported(locus))
    assert set(locus.__all__) <= set(dir(locus))


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_facade_offers_at_run_time_what_it_shows_to_type_checkers(name: str) -> None:
    assert LAZY[name] == imported(ALL[name])
    assert sorted(LAZY[name]) == sorted(exported(ALL[name]))


def test_every_event_and_every_answer_to_it_comes_from_locus() -> None:
    known = {cls for cls in vars(events).values() if isinstance(cls, type) and issubclass(cls, Event)}
    answers = {cls for union in (Directive, Decision, Verdict) for cls in get_args(union)}
    unions = {"Directive": Directive, "Decision": Decision, "Verdict": Verdict}
    wanted = {cls.__name__: cls for cls in known | answers | {Hook}} | unions
    assert {name for name in wanted if name not in locus.__all__} == set()
    assert {name for name, value in wanted.items() if getattr(locus, name) is not value} == set()


def test_a_module_that_is_not_public_lists_no_names() -> None:
    """There an underscore says what belongs to the module alone; a list would only repeat the other names."""
    assert {name for name, module in ALL.items() if "__all__" in vars(module)} == {*MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_all_names_exist(name: str) -> None:
    module = ALL[name]
    names = exported(module)
    assert len(names) == len(set(names))
    assert [one for one in names if not hasattr(module, one)] == []


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_hide_nothing_public(name: str) -> None:
    module = ALL[name]
    assert defined(module) - set(exported(module)) == KERNEL_ONLY.get(name, set())
    assert [one for one in exported(module) if one.startswith("_")] == []


def test_what_is_shared_within_the_kernel_exists() -> None:
    """An entry that nothing needs any more goes."""
    assert {name: names - defined(ALL[name]) for name, names in KERNEL_ONLY.items()} == {
        name: set() for name in KERNEL_ONLY
    }


def private_imports(path: Path) -> Iterator[str]:
    """The names that a file imports from the kernel although they are not public, as ``module.name``.

    What a distribution offers to others under a compat path is public, too.
    """
    public = {name: {*exported(ALL[name])} for name in MODULES}
    for offered in (each for manifest in Catalogue().manifests() for each in manifest.compat_paths):
        module, _, offered_name = offered.partition(":")
        public.setdefault(module, set()).add(offered_name)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "locus":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if alias.name not in public.get(node.module, ()) and name not in public:
                    yield name
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] == "locus" and a.name not in public)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Lazy":
            name = ast.literal_eval(node.args[0])
            if name.partition(".")[0] == "locus" and name not in public:
                yield name


def test_other_distributions_import_only_what_is_public() -> None:
    """What a plugin needs and cannot get is made public on purpose."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("contrib/*/src/**/*.py")]
        if not any(part.startswith("template") for part in path.parts)
        for name in private_imports(path)
    }
    assert found == set()


def test_the_public_api_is_the_frozen_one() -> None:
    frozen = FROZEN.read_text(encoding="utf-8")
    changed = [
        line
        for line in difflib.unified_diff(frozen.splitlines(), listing().splitlines(), "frozen", "now", n=0, lineterm="")
        if not line.startswith("@@")
    ]
    assert not changed, (
        "The public API changed:\n" + "\n".join(changed) + "\nIf that is meant, run `python -m tests.public_api` at "
        "the top of the checkout, and say it in .changelog.d: what went is `removed`, what came is `added`."
    )
