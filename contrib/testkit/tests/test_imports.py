"""What an import brings is told of a new interpreter, and of nothing that this one has imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus_testkit.imports import modules_imported_by


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_module_brings_itself_and_what_it_imports_but_not_what_every_plugin_needs(folder: Path) -> None:
    (folder / "tiny.py").write_text("import its_friend, locus.plugin", encoding="utf-8")
    (folder / "its_friend.py").write_text("", encoding="utf-8")
    assert modules_imported_by("tiny") == {"tiny", "its_friend"}
    assert modules_imported_by("locus.plugin") == set()
    assert "pytest" in modules_imported_by("pytest")


def test_what_cannot_be_imported_is_an_error_with_the_reason(folder: Path) -> None:
    (folder / "broken.py").write_text("raise ValueError('not today')", encoding="utf-8")
    with pytest.raises(ImportError, match=r"(?s)broken cannot be imported.*not today") as caught:
        modules_imported_by("broken")
    assert caught.value.name == "broken"
