"""What the tests of the examples share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import importlib_metadata
import pytest
from tests.together.programs import Programs

from locus.plugins.discovery import GROUP


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """The examples as programs: in an empty folder, with a provider ``script:``, and a state folder of the test."""
    installed = importlib_metadata.entry_points
    script = importlib_metadata.EntryPoint("script", "tests.together.programs:plugin", GROUP)

    def entry_points(**wanted: Any) -> Any:
        found = installed(**wanted)
        return [*found, script] if wanted.get("group") == GROUP else found

    monkeypatch.setattr(importlib_metadata, "entry_points", entry_points)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCUS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("LOCUS_PLUGINS", raising=False)
    monkeypatch.delenv("LOCUS_MODEL", raising=False)
    return Programs()
