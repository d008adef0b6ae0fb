"""The command line with the plugin's commands, and a shop that it runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus, environment, here, process, run_in_process, site, tools

__all__ = ["environment", "here", "locus", "process", "shop", "site", "tools"]

SHOP = Path(__file__).parent / "shop.py"


@pytest.fixture
def shop(here: Path) -> Iterator[Path]:
    """The program with the agents, in the working directory."""
    yield Path(shutil.copy(SHOP, here))
    sys.modules.pop("shop", None)


@pytest.fixture
def locus(here: Path, shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, where this plugin and one that keeps queues are installed."""
    monkeypatch.syspath_prepend(here)
    return run_in_process(here, capsys, monkeypatch, {"cli", "conversation", "provenance", "sqlite", "worker"})
