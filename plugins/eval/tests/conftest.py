"""The command line with the plugin's command, a program with agents, and cases for them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import (
    Locus,
    environment,
    here,
    process,
    run_in_process,
    site,
    terminal,
    tools,
    warm_server,
)

__all__ = ["cases", "environment", "here", "locus", "process", "shop", "site", "terminal", "tools", "warm_server"]

CASES = """
cases:
  - id: lamp
    prompt: lamp
    tags: [light]
    checks:
      - contains: 12 EUR
      - called: {tool: price, arguments: {item: lamp}}
  - id: chair
    prompt: chair
    checks: [{regex: "chair costs \\\\d+ EUR"}]
"""


@pytest.fixture
def shop(here: Path) -> Iterator[Path]:
    """The program, in the working directory."""
    before = set(sys.modules)
    yield Path(shutil.copy(Path(__file__).parent / "shop.py", here))
    for name in set(sys.modules) - before:
        if name.startswith("locus_agent_"):
            del sys.modules[name]


@pytest.fixture
def cases(shop: Path) -> Path:
    """The file of cases, beside the program."""
    path = shop.parent / "desk.eval.yaml"
    path.write_text(CASES, encoding="utf-8")
    return path


@pytest.fixture
def locus(here: Path, shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, where this plugin and those that it needs are installed."""
    return run_in_process(here, capsys, monkeypatch, {"cli", "eval", "graph", "grounding", "sqlite", "timetravel"})
