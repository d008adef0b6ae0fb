"""The package exports what its modules do, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import locus_testkit
from locus_testkit import strategies

FACADE = (
    "cassettes",
    "clock",
    "contracts",
    "crashes",
    "discovery",
    "engine",
    "history",
    "network",
    "scripted_model",
    "stores",
)
STRATEGIES = ("conditions", "data", "events", "journals", "messages", "models", "states")


def export_lists(package: str, modules: tuple[str, ...]) -> set[str]:
    """The union of the export lists of some modules."""
    return {name for each in modules for name in importlib.import_module(f"{package}.{each}").__all__}


def test_package_exports_what_its_modules_do() -> None:
    assert set(locus_testkit.__all__) == export_lists("locus_testkit", FACADE)


def test_strategies_export_what_their_modules_do() -> None:
    internal = {"TOOLS", "arguments", "build_once", "has_arguments", "has_errors", "is_confident"}
    assert set(strategies.__all__) == export_lists("locus_testkit.strategies", STRATEGIES) - internal


@pytest.mark.parametrize("module", [locus_testkit, strategies], ids=lambda module: module.__name__)
def test_everything_exported_exists_and_is_explained(module: object) -> None:
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name


def test_package_does_not_load_hypothesis() -> None:
    code = "import sys, locus_testkit; print('hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
