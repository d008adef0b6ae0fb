"""The plugin contract passes for a good plugin, and each promise fails for one that breaks it."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from locus.plugins.discovery import Catalogue
from locus_testkit import PluginContract

PROMISES = sorted(name for name in dir(PluginContract) if name.startswith("test_"))
#: Not a promise of plugins: `test_contract_base.py` has it.
OF_THE_CONTRACT = "test_every_promise_is_kept_or_excused"

MANIFEST = """
from locus.plugin import Plugin

plugin = Plugin(
    name="sample",
    api=(1, 0),
    summary="Counts the tools that were called.",
    hooks=("locus_sample.hooks:Counter",),
    settings="locus_sample.hooks:Settings",
    keywords={"sample_limit": "limit"},
)
"""
HOOKS = """
from attrs import frozen
from locus.plugin import Hook

@frozen
class Settings:
    limit: int = 10

class Counter(Hook):
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def on_tool_start(self, event) -> None:
        pass
"""


@frozen(kw_only=True)
class Sample:
    """An installed plugin, as files.

    Args:
        entry_point: the name under which it is found.
        manifest: the source of its manifest.
        hooks: the source of its hooks.
        readme: what its distribution says of itself.
        settings: what the contract configures.
    """

    entry_point: str = "sample"
    manifest: str = MANIFEST
    hooks: str = HOOKS
    readme: str = "# Sample"
    settings: Mapping[str, Any] = {}

    def install(self, folder: Path) -> None:
        """Write it the way an installer does."""
        package, info = folder / "locus_sample", folder / "locus_plugin_sample-1.0.dist-info"
        package.mkdir()
        info.mkdir()
        (package / "__init__.py").touch()
        (package / "manifest.py").write_text(self.manifest)
        (package / "hooks.py").write_text(self.hooks)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: locus-plugin-sample\nVersion: 1.0\n\n{self.readme}\n"
        )
        (info / "entry_points.txt").write_text(f"[locus.plugins]\n{self.entry_point} = locus_sample.manifest:plugin\n")

    async def keep(self, promise: str) -> None:
        """Run one test of the contract."""
        contract = type("Made", (PluginContract,), {"name": "sample", "settings": self.settings})()
        test = getattr(contract, promise)
        wanted = inspect.signature(test).parameters
        given: dict[str, Any] = {}
        if "catalogue" in wanted:
            given["catalogue"] = Catalogue()
        if "manifest" in wanted:
            given["manifest"] = Catalogue().manifest("sample")
        done = test(**given)
        if inspect.isawaitable(done):
            await done


GOOD = Sample()

BROKEN: dict[str, tuple[Sample, str]] = {
    "other name": (evolve(GOOD, entry_point="simple"), "test_entry_point_gives_the_manifest_of_its_name"),
    "future api": (
        evolve(GOOD, manifest=MANIFEST.replace("(1, 0)", "(99, 0)")),
        "test_entry_point_gives_the_manifest_of_its_name",
    ),
    "no sentence": (
        evolve(GOOD, manifest=MANIFEST.replace("called.", "called")),
        "test_summary_is_one_sentence",
    ),
    "heavy manifest": (
        evolve(GOOD, manifest=f"import locus_sample.hooks\n{MANIFEST}"),
        "test_manifest_is_light",
    ),
    "heavy library": (evolve(GOOD, manifest=f"import sqlite3\n{MANIFEST}"), "test_manifest_is_light"),
    "missing part": (
        evolve(GOOD, manifest=MANIFEST.replace(":Counter", ":Compter")),
        "test_every_part_can_be_imported",
    ),
    "mutable settings": (
        evolve(GOOD, hooks=HOOKS.replace("@frozen", "@define").replace("frozen", "define")),
        "test_settings_are_a_frozen_attrs_class",
    ),
    "settings without a default": (
        evolve(GOOD, hooks=HOOKS.replace(" = 10", "")),
        "test_settings_are_a_frozen_attrs_class",
    ),
    "settings that take anything": (
        evolve(
            GOOD,
            hooks=HOOKS.replace("limit: int = 10", "limit: int = 10\n    no_such_setting: int = 0"),
        ),
        "test_settings_refuse_what_they_do_not_know",
    ),
    "keyword without a setting": (
        evolve(GOOD, manifest=MANIFEST.replace('"limit"', '"limits"')),
        "test_keywords_set_settings_that_exist",
    ),
    "misspelled hook": (
        evolve(GOOD, hooks=HOOKS.replace("on_tool_start", "on_tool_begin")),
        "test_hooks_are_accepted",
    ),
    "no readme": (evolve(GOOD, readme=""), "test_distribution_has_a_readme"),
    "hook that fails": (evolve(GOOD, hooks=HOOKS.replace("pass", "1 / 0")), "test_agent_runs_with_it"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, whose modules are forgotten at the end."""
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "locus_sample"]:
        del sys.modules[name]


@pytest.mark.anyio
@pytest.mark.parametrize("promise", [promise for promise in PROMISES if promise != OF_THE_CONTRACT])
async def test_promise_holds_for_a_good_plugin(place: Path, promise: str) -> None:
    GOOD.install(place)
    await GOOD.keep(promise)


@pytest.mark.anyio
@pytest.mark.parametrize("what", BROKEN)
async def test_promise_fails_for_a_plugin_that_breaks_it(place: Path, what: str) -> None:
    sample, promise = BROKEN[what]
    sample.install(place)
    broken = False
    try:
        await sample.keep(promise)
    except BaseException as failure:  # noqa: BLE001  # pytest.fail raises a BaseException
        broken = not isinstance(failure, AttributeError | NameError | TypeError)
    assert broken


@pytest.mark.anyio
async def test_plugin_that_needs_settings_is_given_them(place: Path) -> None:
    needy = evolve(GOOD, hooks=HOOKS.replace(" = 10", ""), settings={"limit": 3})
    needy.install(place)
    await needy.keep("test_settings_are_a_frozen_attrs_class")
    await needy.keep("test_agent_runs_with_it")


@pytest.mark.anyio
async def test_plugin_without_settings_and_keywords_keeps_those_promises(place: Path) -> None:
    bare = evolve(
        GOOD,
        manifest='from locus.plugin import Plugin\nplugin = Plugin(name="sample", api=(1, 0), summary="Nothing.")\n',
    )
    bare.install(place)
    for promise in PROMISES:
        if promise != OF_THE_CONTRACT:
            await bare.keep(promise)


def test_every_promise_has_a_plugin_that_breaks_it() -> None:
    assert sorted({promise for _, promise in BROKEN.values()}) == [p for p in PROMISES if p != OF_THE_CONTRACT]
