"""The promises of any plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus_testkit import PluginContract


class TestInstructions(PluginContract):
    name = "instructions"

    @pytest.fixture(autouse=True)
    def _somewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
