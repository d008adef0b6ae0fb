"""Compat paths: fixed import paths whose names come from plugins, and from nowhere else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.toy_plugins import Shelf, shelf

__all__ = ["shelf"]

BUILTIN = "locus.hooks.builtin"
PACKAGES = (BUILTIN, "locus.memory", "locus.reasoning")

#: A module of no plugin of this checkout, directly below the kernel's package.
ABSENT = "locus.gardening"


@pytest.fixture(autouse=True)
def forgotten_packages() -> Iterator[None]:
    """Each test imports the packages anew."""
    yield
    for name in [name for name in sys.modules if name.startswith(tuple(f"{package}." for package in PACKAGES))]:
        del sys.modules[name]
    for name in (*PACKAGES, ABSENT):
        package = sys.modules.pop(name, None)
        parent, _, last = name.rpartition(".")
        if package is not None and getattr(sys.modules[parent], last, None) is package:
            delattr(sys.modules[parent], last)


def offer(shelf: Shelf, name: str, compat_paths: dict[str, str], **modules: str) -> None:
    for module, source in modules.items():
        shelf.module(module, source)
    shelf.plugin(name, compat_paths=repr(compat_paths))


def test_a_name_is_imported_from_the_plugin_that_offers_it_on_first_use(shelf: Shelf) -> None:
    offer(shelf, "audit", {f"{BUILTIN}:AuditHook": "toy_hooks:Audit"}, toy_hooks="class Audit: pass")

    package = importlib.import_module(BUILTIN)
    assert "toy_hooks" not in sys.modules
    space: dict[str, Any] = {}
    exec("from locus.hooks.builtin import AuditHook", space)

    assert space["AuditHook"] is sys.modules["toy_hooks"].Audit
    assert "AuditHook" in vars(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_exist_below_every_compat_path_where_a_plugin_offers_names_in_them(shelf: Shelf, package: str) -> None:
    offer(shelf, "audit", {f"{package}.deep.trail:Trail": "toy_deep:Trail"}, toy_deep="class Trail: pass")

    deep = importlib.import_module(f"{package}.deep.trail")

    assert deep.Trail is sys.modules["toy_deep"].Trail
    assert dir(importlib.import_module(f"{package}.deep")).count("trail") == 1
    assert "Trail" in dir(deep)
    assert package in (deep.__doc__ or "")


def test_a_module_of_a_compat_path_can_be_imported_from_it(shelf: Shelf) -> None:
    offer(shelf, "audit", {"locus.reasoning.audit:Judge": "toy_deep:Judge"}, toy_deep="Judge = 1")

    space: dict[str, Any] = {}
    exec("from locus.reasoning import audit", space)

    assert space["audit"].Judge == 1


def test_the_names_of_a_compat_path_are_listed_without_importing_them(shelf: Shelf) -> None:
    offer(shelf, "audit", {f"{BUILTIN}:AuditHook": "toy_hooks:Audit"})

    assert "AuditHook" in dir(importlib.import_module(BUILTIN))
    assert "toy_hooks" not in sys.modules


def test_a_star_import_brings_every_name_that_is_offered(shelf: Shelf) -> None:
    offered = {f"{ABSENT}:AuditHook": "toy_hooks:Audit", f"{ABSENT}:Trail": "toy_hooks:Trail"}
    offer(shelf, "audit", offered, toy_hooks="class Audit: pass\nclass Trail: pass")

    space: dict[str, Any] = {}
    exec(f"from {ABSENT} import *", space)

    assert space.keys() - {"__builtins__"} == {"AuditHook", "Trail"}


def missing(statement: str) -> str:
    with pytest.raises(ImportError) as caught:
        exec(statement, {})
    return str(caught.value)


def test_a_missing_name_says_who_came_nearest_and_how_names_get_there(shelf: Shelf) -> None:
    offer(shelf, "audit", {f"{BUILTIN}:AuditHook": "toy_hooks:Audit"})

    text = missing("from locus.hooks.builtin import AuditHok")

    assert "cannot import 'AuditHok' from 'locus.hooks.builtin': no installed plugin offers it" in text
    assert "the nearest is locus.hooks.builtin.AuditHook of plugin 'audit'" in text
    assert "pip install" not in text


def test_a_missing_module_says_so_as_well(shelf: Shelf) -> None:
    offer(shelf, "audit", {"locus.reasoning.audit:Judge": "toy_deep:Judge"})

    text = missing("import locus.reasoning.audti")

    assert "the nearest is locus.reasoning.audit of plugin 'audit'" in text
    assert "pip install" not in text


def test_plugins_that_cannot_be_read_are_mentioned_and_harm_no_others(shelf: Shelf) -> None:
    offer(shelf, "audit", {f"{BUILTIN}:AuditHook": "toy_hooks:Audit"}, toy_hooks="class Audit: pass")
    shelf.plugin("broken", manifest="raise RuntimeError")

    assert "installed and cannot be read: broken" in missing("from locus.hooks.builtin import Zzz")
    exec("from locus.hooks.builtin import AuditHook", {})


def test_a_compat_path_answers_hasattr_like_any_module(shelf: Shelf) -> None:
    package = importlib.import_module(BUILTIN)

    assert not hasattr(package, "Nothing")
    assert not hasattr(package, "__wrapped__")
    assert getattr(package, "Nothing", 7) == 7
    with pytest.raises(AttributeError, match="no installed plugin offers it"):
        _ = package.Nothing


def test_a_name_that_two_plugins_offer_is_an_error_that_names_both(shelf: Shelf) -> None:
    offer(shelf, "audit", {f"{BUILTIN}:Hook": "toy_hooks:Audit"}, toy_hooks="class Audit: pass")
    offer(shelf, "rival", {f"{BUILTIN}:Hook": "toy_hooks:Audit"})

    assert "offered by more than one plugin: audit and rival" in missing("from locus.hooks.builtin import Hook")


def test_an_offered_name_that_cannot_be_imported_is_an_import_error_with_its_cause(shelf: Shelf) -> None:
    offer(shelf, "audit", {f"{BUILTIN}:AuditHook": "toy_hooks:Audit"}, toy_hooks="raise RuntimeError('no display')")

    text = missing("from locus.hooks.builtin import AuditHook")

    assert "plugin 'audit': toy_hooks:Audit cannot be imported: RuntimeError: no display" in text


def test_a_plugin_cannot_add_to_a_module_of_the_kernel(shelf: Shelf) -> None:
    offer(shelf, "audit", {"locus.core.state:Extra": "toy_hooks:Audit", "locus.hooks:X": "toy_hooks:Audit"})

    with pytest.raises(ImportError):
        exec("from locus.core.state import Extra", {})
    with pytest.raises(ImportError):
        exec("from locus.hooks import X", {})
    assert "locus.core.state" not in missing("from locus.hooks.builtin import Extra")


def test_other_imports_do_not_notice_the_compat_paths() -> None:
    importlib.import_module(BUILTIN)

    with pytest.raises(ModuleNotFoundError, match="No module named 'locus_compat_paths_are_not_here'"):
        importlib.import_module("locus_compat_paths_are_not_here")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'locus\.core\.gardening'"):
        importlib.import_module("locus.core.gardening")
    with pytest.raises(ImportError, match=r"^cannot import name 'Gardener' from 'locus' \("):
        exec("from locus import Gardener", {})


def test_a_module_that_the_kernel_does_not_have_comes_from_the_plugin_that_offers_it(shelf: Shelf) -> None:
    offer(shelf, "garden", {f"{ABSENT}:dig": "toy_spade:dig"}, toy_spade="dig = 'deep'")

    module = importlib.import_module(ABSENT)
    space: dict[str, Any] = {}
    exec("from locus.gardening import dig as one\nfrom locus import gardening\nanother = gardening.dig", space)

    assert (module.dig, space["one"], space["another"]) == ("deep", "deep", "deep")
    assert "no installed plugin offers it; the nearest is locus.gardening.dig" in missing(
        "from locus.gardening import dug"
    )


def test_a_package_of_the_kernel_gets_the_modules_that_plugins_offer_below_it(shelf: Shelf) -> None:
    offer(shelf, "garden", {"locus.core.spades:dig": "toy_spade:dig"}, toy_spade="dig = 'deep'")

    try:
        assert importlib.import_module("locus.core.spades").dig == "deep"
        assert "the nearest is locus.core.spades.dig" in missing("from locus.core.spades import dug")
    finally:
        del sys.modules["locus.core.spades"]
        del sys.modules["locus.core"].spades


@pytest.mark.parametrize("statement", ["import locus.gardening", "from locus import gardening"])
def test_a_module_that_no_plugin_offers_says_how_it_gets_there(shelf: Shelf, statement: str) -> None:
    text = missing(statement)

    assert "cannot import 'gardening' from 'locus': no installed plugin offers it" in text
    assert "Names get there from plugins" in text
    assert "pip install" not in text


def test_a_misspelled_module_names_the_plugin_that_offers_the_right_one(shelf: Shelf) -> None:
    offer(shelf, "garden", {f"{ABSENT}:dig": "toy_spade:dig"})

    text = missing("import locus.gardenin")

    assert "the nearest is locus.gardening of plugin 'garden'" in text
    assert "pip install" not in text


def test_there_is_one_finder_however_many_compat_paths_there_are(shelf: Shelf) -> None:
    for package in PACKAGES:
        importlib.import_module(package)

    assert [type(finder).__module__.partition(".")[0] for finder in sys.meta_path].count("locus") == 1
