"""The promises of any plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus_testkit import PluginContract

from .kit import add_skill


class TestSkills(PluginContract):
    name = "skills"

    @pytest.fixture(autouse=True)
    def _somewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add_skill(tmp_path / "skills", "review")
        monkeypatch.chdir(tmp_path)
