"""`PluginContract`: what a user may rely on when a plugin is installed, one test a promise.

A plugin is a light manifest, parts that exist, checked settings, hooks that the kernel accepts, and an
agent that still runs with it, on either backend.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import pytest

from locus import Agent
from locus.core import EMPTY
from locus.core.errors import SettingsError
from locus.core.events import HookFailedEvent, TerminateEvent
from locus.hooks import HookManager
from locus.plugin import Plugin
from locus.plugins import GROUP, Catalogue, Layer, PluginRequest, activate, load, structure
from locus_testkit.contracts.base import Contract
from locus_testkit.imports import modules_imported_by
from locus_testkit.scripted_model import ScriptedModel, call

__all__ = ["PluginContract"]


@pytest.mark.anyio
class PluginContract(Contract):
    """The promises of an installed plugin. Subclass it and name the plugin.

    Example::

        class TestAudit(PluginContract):
            name = "audit"
            settings = {"folder": "logs"}
    """

    #: The plugin's name: its entry point.
    name: ClassVar[str]
    #: What must be configured before it runs; empty when its defaults suffice, as they should.
    settings: ClassVar[Mapping[str, Any]] = EMPTY

    @pytest.fixture
    def catalogue(self) -> Catalogue:
        """The installed plugins."""
        return Catalogue()

    @pytest.fixture
    def manifest(self, catalogue: Catalogue) -> Plugin:
        """The plugin's manifest."""
        return catalogue.manifest(self.name)

    def test_entry_point_gives_the_manifest_of_its_name(self, manifest: Plugin) -> None:
        """The plugin is installed once, under its manifest's name, for an API that this kernel speaks."""
        assert isinstance(manifest, Plugin)
        assert manifest.name == self.name

    def test_summary_is_one_sentence(self, manifest: Plugin) -> None:
        """``locus plugins`` shows it on one line."""
        assert manifest.summary.strip()
        assert "\n" not in manifest.summary
        assert manifest.summary.endswith(".")

    def test_manifest_is_light(self) -> None:
        """Importing it imports `locus.plugin`, the packages above it, and nothing else."""
        module = self._entry_point().module
        parts = module.split(".")
        own = {".".join(parts[: i + 1]) for i in range(len(parts))}
        assert modules_imported_by(module) - own == set(), f"importing {module} imports more than locus.plugin"

    def test_every_part_can_be_imported(self, manifest: Plugin) -> None:
        """Hooks, settings, factories and compat paths are where the manifest says."""
        for reference in _references(manifest):
            assert load(self.name, reference) is not None

    def test_settings_are_a_frozen_attrs_class(self, manifest: Plugin) -> None:
        """Settings cannot change under a running agent."""
        if manifest.settings is None:
            return
        cls: Any = load(self.name, manifest.settings)
        assert attrs.has(cls)
        made: Any = structure(cls, [Layer("the test", self.name, self.settings)])
        for field in attrs.fields(cls):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(made, field.name, None)

    def test_settings_refuse_what_they_do_not_know(self, manifest: Plugin) -> None:
        """A misspelled key is an error, not a setting without effect."""
        if manifest.settings is None:
            return
        wrong = Layer("the test", self.name, {**self.settings, "no_such_setting": 1})
        with pytest.raises(SettingsError, match="no_such_setting"):
            structure(load(self.name, manifest.settings), [wrong])

    def test_keywords_set_settings_that_exist(self, manifest: Plugin) -> None:
        """Each `Agent` keyword that the manifest declares sets a field of the settings class."""
        if not manifest.keywords:
            return
        assert manifest.settings is not None, "keywords set settings, and the plugin has none"
        fields = {field.alias for field in attrs.fields(load(self.name, manifest.settings))}
        assert set(manifest.keywords.values()) <= fields

    def test_hooks_are_accepted(self, catalogue: Catalogue) -> None:
        """Every hook exists, takes arguments that the specification has, and is ordered without a circle."""
        wanted = PluginRequest(keywords={self.name: self._enable()}, strict=True)
        active = activate(wanted, catalogue)
        HookManager.build(active.plugins, reports=active.reports)
        assert [plugin.manifest.name for plugin in active.plugins] == [self.name]

    def test_distribution_has_a_readme(self) -> None:
        """What the package index shows: the text of a README."""
        found = self._entry_point().dist
        assert found is not None
        text = str(importlib.metadata.metadata(found.name).json.get("description", ""))
        assert text.strip(), f"{found.name} has no README in its metadata; set readme= in its pyproject.toml"

    async def test_agent_runs_with_it(self, catalogue: Catalogue) -> None:
        """A run with a tool call ends once and well, and no hook of the plugin fails in it."""

        def echo(text: str) -> str:
            """Give the text back."""
            return text

        model = ScriptedModel(call("echo", text="hello"), "Done.", after="repeat")
        agent: Agent[Any, Any] = Agent(model, tools=[echo], catalogue=catalogue, **{self.name: self._enable()})
        events = [event async for event in agent.run("Say hello.")]
        failed = [e for e in events if isinstance(e, HookFailedEvent) and e.plugin == self.name]
        assert failed == []
        ends = [e for e in events if isinstance(e, TerminateEvent)]
        assert len(ends) == 1
        assert ends[0].error is None

    def _enable(self) -> Any:
        return dict(self.settings) or True

    def _entry_point(self) -> importlib.metadata.EntryPoint:
        found = importlib.metadata.entry_points(group=GROUP, name=self.name)
        assert len(found) == 1, f"{len(found)} distributions provide the plugin {self.name!r}"
        return next(iter(found))


def _references(manifest: Plugin) -> Iterator[str]:
    yield from manifest.hooks
    if manifest.settings is not None:
        yield manifest.settings
    yield from manifest.provides.values()
    yield from manifest.compat_paths.values()
