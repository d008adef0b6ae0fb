"""No test finds an embedding model that somebody has fetched on this machine, except those that ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _empty_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if request.node.get_closest_marker("e2e") is None:
        monkeypatch.setenv("LOCUS_CACHE", str(tmp_path / "cache"))
