"""Locks of servers are kept apart from those of the person who runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where locks are kept."""
    folder = tmp_path / "state"
    monkeypatch.setenv("LOCUS_STATE", str(folder))
    return folder
