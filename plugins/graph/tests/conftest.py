"""The command line with the plugin's commands: the fixtures of its own tests, with this plugin among what is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus, environment, here, run_in_process, site, tools

__all__ = ["environment", "here", "locus", "site", "tools"]


@pytest.fixture
def locus(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Locus:
    """Runs a command line in this process, where this plugin and one that keeps threads are installed."""
    return run_in_process(here, capsys, monkeypatch, {"cli", "graph", "sqlite"})
