"""Packages with a few bytes of weights, installed on a path of their own."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve, frozen

from locus_plugin_llamacpp.catalogue import PackagedModel, Part

CONTENT = [b"GGUF" + b"a" * 5000, b"b" * 7000, b"c" * 3000]


@frozen
class FakeModel:
    """A packaged model whose parts lie in ``site``."""

    pinned: PackagedModel
    site: Path

    def part(self, number: int) -> Path:
        """The file of a part, counted from 1."""
        return self.site / f"tiny_part{number}" / "data" / f"part{number:02d}.bin"

    def info(self, number: int) -> Path:
        """The metadata folder of a part."""
        return self.site / f"tiny_part{number}-1.0.dist-info"

    def pinned_at(self, size: int) -> FakeModel:
        """The same parts with another pinned size."""
        return FakeModel(evolve(self.pinned, size=size), self.site)


def write_distribution(site: Path, number: int, content: bytes, *, version: str = "1.0") -> None:
    """One part as pip would have installed it, with a package that must never be imported."""
    package, info = site / f"tiny_part{number}", site / f"tiny_part{number}-{version}.dist-info"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('weights are data: nobody imports this')\n")
    (package / "data" / f"part{number:02d}.bin").write_bytes(content)
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: {version}\n")
    files = [f"tiny_part{number}/__init__.py", f"tiny_part{number}/data/part{number:02d}.bin", f"{info.name}/METADATA"]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))


@pytest.fixture
def fake_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    site = tmp_path / "site"
    for number, content in enumerate(CONTENT, 1):
        write_distribution(site, number, content)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    whole = b"".join(CONTENT)
    pinned = PackagedModel(
        name="tiny",
        extra="tiny",
        parts=tuple(Part(f"tiny-part{i}", "1.0", f"data/part{i:02d}.bin") for i in range(1, len(CONTENT) + 1)),
        size=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
        licence="none",
        summary="three parts of nothing",
    )
    return FakeModel(pinned, site)


@pytest.fixture
def put_in_catalogue(monkeypatch: pytest.MonkeyPatch) -> Callable[[PackagedModel], None]:
    def put(model: PackagedModel) -> None:
        monkeypatch.setattr("locus_plugin_llamacpp.weights.CATALOGUE", {model.name: model})

    return put
