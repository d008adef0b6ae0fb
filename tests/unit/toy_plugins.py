"""Toy plugins, installed for real: a module and a dist-info directory with entry points, on a path of their own."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

MANIFEST = """\
from locus.plugin import Plugin
plugin = Plugin({arguments})
"""


class Shelf:
    """A directory on `sys.path` to which distributions are installed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def module(self, name: str, source: str) -> None:
        """A module file; dots make packages."""
        *packages, last = name.split(".")
        folder = self.path
        for package in packages:
            folder /= package
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").touch()
        (folder / f"{last}.py").write_text(textwrap.dedent(source))

    def dist(self, name: str, entries: dict[str, str], version: str = "1.0", group: str = "locus.plugins") -> None:
        """A distribution's metadata."""
        info = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = "\n".join(f"{entry} = {target}" for entry, target in entries.items())
        (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")

    def plugin(
        self,
        name: str,
        *,
        version: str = "1.0",
        dist: str = "",
        hooks: str = "",
        references: str = "",
        manifest: str = "",
        **fields: str,
    ) -> None:
        """A whole plugin.

        Args:
            name: the plugin's name; its modules are ``toy_<name>`` and ``toy_<name>_hooks``.
            version: of the distribution.
            dist: its name, ``toy-<name>`` when empty; that of an installed one takes its place.
            hooks: source of the hooks module.
            references: the manifest's ``hooks``, as source; that module when there is one.
            manifest: source of the manifest's module, instead of a right one.
            fields: further fields of the manifest, as source.
        """
        if hooks:
            self.module(f"toy_{name}_hooks", hooks)
            references = references or f"('toy_{name}_hooks',)"
        if references:
            fields["hooks"] = references
        given = {"name": repr(name), "api": "(1, 0)", "summary": "'A toy.'", **fields}
        arguments = ", ".join(f"{key}={value}" for key, value in given.items())
        self.module(f"toy_{name}", manifest or MANIFEST.format(arguments=arguments))
        self.dist(dist or f"toy-{name}", {name: f"toy_{name}:plugin"}, version)

    def imported(self) -> set[str]:
        """The toy modules that are loaded now."""
        return {name for name in sys.modules if name.startswith("toy_")}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """An empty shelf, first on the path; what was imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Shelf(tmp_path)
    for name in [name for name in sys.modules if name.startswith("toy_")]:
        del sys.modules[name]
