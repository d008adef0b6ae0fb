from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from locus.plugins.manifest import load
from locus_kit.pinned import obtain
from locus_plugin_llamacpp import listing
from locus_plugin_llamacpp.catalogue import PackagedModel
from locus_plugin_llamacpp.manifest import plugin
from locus_plugin_llamacpp.model import Available, available
from locus_plugin_llamacpp.settings import LlamaCppSettings
from locus_plugin_llamacpp.weights import find, parse

from .conftest import FakeModel


def test_the_files_that_can_be_pulled_go_where_the_model_looks(
    fake_model: FakeModel, put_in_catalogue: Callable[[PackagedModel], None], tmp_path: Path
) -> None:
    put_in_catalogue(fake_model.pinned)
    settings = LlamaCppSettings(cache_dir=str(tmp_path / "cache"), progress=False)
    assert [each.installed for each in available(settings.cache_dir)] == [False]

    ((file, folder),) = listing.pinned_files(settings)
    pulled = obtain(file, folder)

    assert pulled == find(parse("tiny"), cache_dir=settings.cache_dir)
    assert [each.installed for each in available(settings.cache_dir)] == [True]
    assert dict(listing.models(settings))["llamacpp:tiny"].endswith("Here.")


def test_the_manifest_points_at_what_the_command_line_asks_for() -> None:
    assert load("llamacpp", plugin.provides["models"]) is listing.models
    assert load("llamacpp", plugin.provides["default_model"]) is listing.default_model
    assert load("llamacpp", plugin.provides["pinned_files"]) is listing.pinned_files


def test_every_packaged_model_is_listed_with_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path))
    rows = dict(listing.models(None))

    for each in available():
        assert f"{each.size // 1_000_000} MB" in rows[each.name]
        assert f"locus models pull {each.name}" in rows[each.name]
    assert "llamacpp:/path/model.gguf" in rows
    assert "llamacpp:hf:OWNER/REPO:FILE" in rows


def _model(name: str, *, installed: bool) -> Available:
    return Available(
        name=name, installed=installed, size=1, summary="A model.", install="locus models pull it", licence="Apache-2.0"
    )


@pytest.mark.parametrize(
    ("installed", "chosen"), [((True, True), "llamacpp:big"), ((False, True), "llamacpp:small"), ((False, False), None)]
)
def test_the_default_is_the_first_model_whose_weights_are_here(
    installed: tuple[bool, bool], chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (_model("llamacpp:big", installed=installed[0]), _model("llamacpp:small", installed=installed[1]))
    monkeypatch.setattr(listing, "available", lambda: here)

    answer = listing.default_model({})

    assert (answer and answer[1]) == chosen
