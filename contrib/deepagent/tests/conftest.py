"""The command line with `locus deep`: the fixtures of its own tests, with models that work on files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plugins.cli.tests.conftest import (
    environment,
    here,
    installed,
    process,
    run_in_process,
    terminal,
    tools,
    untrusting,
    warm_server,
)

__all__ = ["environment", "here", "process", "terminal", "tools", "untrusting", "warm_server"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed distributions, with the scripted models."""
    folder = tmp_path / "site"
    installed(folder, "toy", "deep_provider.py", points="toy = deep_provider:plugin")
    shutil.copy(Path(__file__).parent / "deep_provider.py", folder)
    return folder


@pytest.fixture
def without(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Callable[..., Any]]:
    """Makes what runs a command line in this process, as if some of the plugins were not installed."""
    every = {
        "approval", "cli", "conversation", "deepagent", "filesystem", "instructions", "provenance", "shell", "signals",
        "sqlite", "subagents", "timetravel", "todos", "web",
    }  # fmt: skip
    return lambda *missing: run_in_process(here, capsys, monkeypatch, every - set(missing))


@pytest.fixture
def locus(without: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """Runs a command line in this process, where all parts are installed."""
    return without()
