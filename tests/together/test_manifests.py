"""What the manifests of this checkout's plugins say about their settings is true of the settings."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from locus.plugin import Plugin
from locus.plugins import Catalogue, load
from locus_plugin_cli.distributions import PLUGINS

EVERY = Catalogue().manifests()

FOLDERS = {path.parent.name for path in Path(__file__).parents[2].glob("plugins/*/pyproject.toml")}

#: Kinds of settings that can never be harmless, by how they are written.
_GRAVE = ("Secret", "Path", "Callable", "Model", "Any", "headers", "Mapping")


@pytest.mark.parametrize("manifest", EVERY, ids=lambda manifest: manifest.name)
def test_harmless_and_included_settings_exist(manifest: Plugin) -> None:
    named = {*manifest.harmless, *manifest.includes}
    known = (
        set() if manifest.settings is None else {f.alias for f in attrs.fields(load(manifest.name, manifest.settings))}
    )

    assert named <= known
    assert not set(manifest.harmless) & set(manifest.includes)


@pytest.mark.parametrize("manifest", [m for m in EVERY if m.harmless], ids=lambda manifest: manifest.name)
def test_nothing_that_names_something_is_harmless(manifest: Plugin) -> None:
    assert manifest.settings is not None
    for field in attrs.fields(load(manifest.name, manifest.settings)):
        if field.alias in manifest.harmless:
            written = field.type if isinstance(field.type, str) else str(field.type)
            assert not any(word in written for word in _GRAVE), f"{manifest.name}.{field.alias}: {written}"
            assert not any(word in field.alias for word in ("url", "host", "key", "file", "path", "model", "command"))


def test_there_is_something_to_look_at() -> None:
    assert any(manifest.harmless for manifest in EVERY)
    assert any(manifest.includes for manifest in EVERY)


def test_the_command_line_says_how_to_install_every_plugin() -> None:
    assert PLUGINS >= FOLDERS
