"""A file of the hub comes through its client when that is installed, and every way to fail has its type."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from locus_plugin_llamacpp.errors import HubUnreachable, WeightsError, WeightsMissing
from locus_plugin_llamacpp.weights import find, parse

NAME = "hf:owner/repo:folder/model.gguf"


class Hub:
    """The two modules of the client that are asked for, with the bases that its errors really have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[tuple[str, str]] = []
        self.fails: Exception | None = None
        self.missing = type("EntryNotFoundError", (Exception,), {})
        self.offline = type("LocalEntryNotFoundError", (self.missing, FileNotFoundError, ValueError), {})
        self.no_repository = type("RepositoryNotFoundError", (Exception,), {})

    def hf_hub_download(self, *, repo_id: str, filename: str) -> str:
        self.asked.append((repo_id, filename))
        if self.fails is not None:
            raise self.fails
        return str(self.path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(tmp_path / "model.gguf")
    made.path.write_bytes(b"GGUF...")
    client, errors = ModuleType("huggingface_hub"), ModuleType("huggingface_hub.errors")
    vars(client).update(hf_hub_download=made.hf_hub_download, __path__=[])
    vars(errors).update(
        LocalEntryNotFoundError=made.offline,
        EntryNotFoundError=made.missing,
        RepositoryNotFoundError=made.no_repository,
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)
    return made


def test_repository_and_file_are_asked_for(hub: Hub) -> None:
    assert find(parse(NAME)) == hub.path
    assert hub.asked == [("owner/repo", "folder/model.gguf")]


def test_without_a_connection_and_without_the_file_in_its_cache_it_says_so(hub: Hub) -> None:
    hub.fails = hub.offline("cannot find the file, and outgoing traffic is disabled")

    with pytest.raises(HubUnreachable, match="cannot be reached") as caught:
        find(parse(NAME))
    assert caught.value.retryable
    assert caught.value.model == NAME


@pytest.mark.parametrize("which", ["missing", "no_repository"])
def test_what_the_hub_does_not_have_is_named(hub: Hub, which: str) -> None:
    hub.fails = getattr(hub, which)("404")

    with pytest.raises(WeightsMissing, match=r"folder/model\.gguf.*owner/repo"):
        find(parse(NAME))


def test_any_other_refusal_is_an_error_of_the_weights(hub: Hub) -> None:
    hub.fails = OSError("403 gated")

    with pytest.raises(WeightsError, match="403 gated"):
        find(parse(NAME))


def test_a_file_of_the_hub_that_is_not_a_model_is_refused(hub: Hub) -> None:
    hub.path.write_text("<html>")

    with pytest.raises(WeightsError, match="is not a GGUF file"):
        find(parse(NAME))


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(WeightsMissing) as caught:
        find(parse(NAME))
    assert caught.value.install == "pip install 'locus-plugin-llamacpp[hf]'"
