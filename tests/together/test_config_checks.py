"""A configuration is checked with what is installed: the settings of every plugin that it mentions."""

from __future__ import annotations

from pathlib import Path

from tests.unit.toy_plugins import Shelf, shelf

from locus.config import load_config
from locus.plugins import Catalogue
from locus_plugin_cli.checks import check_config

__all__ = ["shelf"]

SETTINGS = """
from attrs import frozen
@frozen
class Settings:
    level: str
    size: int = 1
"""


def test_a_check_reads_the_settings_of_every_plugin_that_is_mentioned(shelf: Shelf, tmp_path: Path) -> None:
    shelf.module("toy_audit_settings", SETTINGS)
    shelf.plugin("audit", settings="'toy_audit_settings:Settings'")
    shelf.plugin("guard", settings="'toy_audit_settings:Settings'")
    shelf.plugin("beacon", manifest="raise RuntimeError('no display')")
    text = """
    required = ["gone"]
    [plugins]
    enabled = ["audit", "guard", "beacon"]
    [plugins.audit]
    levl = "INFO"
    size = "1"
    [plugins.audti]
    level = 1
    """
    path = tmp_path / "locus.toml"
    path.write_text(text)

    checked = check_config(load_config(path, environ={}), Catalogue(), {})

    assert checked.problems == (
        f"{path}: plugins.audit.levl is not a setting; did you mean 'level'?",
        f"{path}: plugins.audit.level is missing; expected text",
        f"{path}: plugins.audit.size is '1'; expected an integer",
        f"{path}: plugins.guard.level is missing; expected text",
        f"{path}: plugin 'gone' is not installed",
    )
    assert checked.warnings == (
        f"{path}: plugin 'beacon': toy_beacon:plugin cannot be imported: RuntimeError: no display",
        f"{path}: plugin 'audti' is not installed; did you mean 'audit'?",
    )
