"""Plugins of one test: written, catalogued and forgotten again, and never looked for among what is installed.

A test that scans the machine's entry points passes or fails by what else is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from locus.plugin import API, Plugin
from locus.plugins import GROUP, Catalogue

__all__ = ["Discovery", "DiscoveryRefused", "TemporaryPlugins"]

EntryPoints = Callable[..., Any]


class DiscoveryRefused(AssertionError):
    """A test looked for installed plugins without saying that it means to."""

    def __init__(self) -> None:
        super().__init__(
            f"this test scanned the installed entry points of {GROUP!r}: pass "
            "Agent(catalogue=plugin_catalogue.catalogue), or say `with no_discovery.allow():` where the "
            "machine's plugins are meant"
        )


@final
class Discovery:
    """A guard around the look-up of entry points; the fixture ``no_discovery`` puts it in place.

    Args:
        entry_points: the look-up that it guards.
    """

    def __init__(self, entry_points: EntryPoints) -> None:
        self._entry_points = entry_points
        self._allowed = 0

    def __call__(self, **params: Any) -> Any:
        """Look entry points up, those of other groups always."""
        if params.get("group", GROUP) == GROUP and not self._allowed:
            raise DiscoveryRefused
        return self._entry_points(**params)

    @contextmanager
    def allow(self) -> Iterator[None]:
        """Let the machine's plugins be found within the block."""
        self._allowed += 1
        try:
            yield
        finally:
            self._allowed -= 1


@final
class TemporaryPlugins:
    """Plugins that exist for one test; the fixture ``plugin_catalogue`` gives one.

    Args:
        folder: where modules are written; it must be on ``sys.path``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plugins: list[Plugin] = []
        self._modules: list[str] = []

    @property
    def catalogue(self) -> Catalogue:
        """What ``Agent(catalogue=...)`` takes: the plugins of this test and no other."""
        return Catalogue.only(*self._plugins)

    def add(self, *plugins: Plugin) -> None:
        """Put manifests into the catalogue."""
        self._plugins += plugins

    def write(self, name: str, source: str, *, hooks: Sequence[str] = (), **manifest: Any) -> Plugin:
        """Write a plugin's module and put its manifest into the catalogue.

        Args:
            name: the plugin's name.
            source: the module that holds its parts.
            hooks: names within that module.
            manifest: further fields of `Plugin`. ``settings``, and the values of ``provides``, are names
                within the module as well; a reference with a colon is taken as it is.

        Returns:
            The manifest.
        """
        module = f"locus_temporary_{name}"
        (self._folder / f"{module}.py").write_text(source, encoding="utf-8")
        self._modules.append(module)
        if manifest.get("settings"):
            manifest["settings"] = _reference(module, manifest["settings"])
        if "provides" in manifest:
            manifest["provides"] = {k: _reference(module, v) for k, v in manifest["provides"].items()}
        fields: dict[str, Any] = {"api": API, "summary": f"The plugin {name} of a test.", **manifest}
        plugin = Plugin(name=name, hooks=tuple(_reference(module, hook) for hook in hooks), **fields)
        self.add(plugin)
        return plugin

    def forget(self) -> None:
        """Drop the modules, so that the next test can write others under the same names."""
        for module in self._modules:
            sys.modules.pop(module, None)


def _reference(module: str, name: str) -> str:
    return name if ":" in name else f"{module}:{name}"
