"""From ``"scheme:rest"`` to a model, a checkpointer or a backend."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest
from attrs import frozen
from tests.unit.toy_plugins import Shelf, shelf

from locus.core.errors import ConfigError, PluginError, PluginLoadError, SettingsError, UnknownName
from locus.models import Model, ModelProtocol, ModelRequest, ModelResponse, get_model
from locus.plugins.discovery import Catalogue
from locus.plugins.providers import provide
from locus.plugins.settings import Layer

__all__ = ["shelf"]

ACME = """
from attrs import frozen

@frozen
class Settings:
    url: str = "https://acme.example"
    retries: int = 2

@frozen
class Acme:
    name: str
    settings: Settings

    async def complete(self, request, on_chunk=None):
        raise NotImplementedError

def make(rest, settings):
    if rest == "broken":
        raise OSError("no route")
    if rest == "odd":
        return object()
    return Acme("acme:" + rest, settings)
"""


@pytest.fixture
def acme(shelf: Shelf) -> Shelf:
    shelf.module("toy_acme_models", ACME)
    shelf.plugin(
        "acme",
        settings="'toy_acme_models:Settings'",
        provides="{'model': 'toy_acme_models:make', 'backend': 'toy_acme_models:Settings', 'checkpointer': 'toy_no:x'}",
    )
    return shelf


@frozen
class Handmade:
    """A model that nobody installed."""

    name: str = "mine"

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        raise NotImplementedError


def test_the_scheme_names_the_plugin_and_its_factory_gets_the_rest(acme: Shelf) -> None:
    model: ModelProtocol = get_model("acme:large:v2")
    assert isinstance(model, ModelProtocol)

    assert model.name == "acme:large:v2"
    assert isinstance(model, Model)
    assert vars_of(model) == ("https://acme.example", 2)


def vars_of(model: Any) -> tuple[Any, ...]:
    return (model.settings.url, model.settings.retries)


STORES = "def make(rest, settings): return ('made', rest)"


@pytest.mark.parametrize("given", ["runs.acme", "./a/runs.acme", PurePath("a", "runs.acme")])
def test_a_path_goes_to_the_plugin_whose_files_end_so(shelf: Shelf, given: str | PurePath) -> None:
    shelf.module("toy_acme_stores", STORES)
    shelf.plugin("acme", provides="{'checkpointer': 'toy_acme_stores:make'}", suffixes="('.acme', '.ac')")
    shelf.plugin("other", provides="{'model': 'toy_acme_stores:make'}", suffixes="('.acme',)")

    assert provide("checkpointer", given) == ("made", str(given))
    assert provide("checkpointer", f"acme:{given}") == ("made", str(given))


def test_a_path_that_two_plugins_take_needs_a_scheme(shelf: Shelf) -> None:
    shelf.module("toy_acme_stores", STORES)
    for name in ("one", "two"):
        shelf.plugin(name, provides="{'checkpointer': 'toy_acme_stores:make'}", suffixes="('.acme',)")

    with pytest.raises(ConfigError, match=r"takes such a path; write 'one:x\.acme' or 'two:x\.acme'"):
        provide("checkpointer", "x.acme")


def test_a_path_that_no_plugin_takes_is_refused(acme: Shelf) -> None:
    with pytest.raises(ConfigError, match=r"names no plugin; write 'plugin:runs\.odd'"):
        provide("checkpointer", "runs.odd")
    with pytest.raises(
        ConfigError, match=r"no installed plugin takes a path that ends in '\.odd'; write 'plugin:runs\.odd'"
    ):
        provide("checkpointer", PurePath("runs.odd"))


def test_settings_are_looked_up_by_the_plugins_name(acme: Shelf) -> None:
    given = {"acme": {"retries": 5}, "other": {"nonsense": 1}}

    assert vars_of(get_model("acme:x", settings=given)) == ("https://acme.example", 5)
    layer = Layer("locus.toml", "plugins.acme", {"url": "https://eu.acme.example"})
    assert vars_of(get_model("acme:x", settings={"acme": layer})) == ("https://eu.acme.example", 2)
    made: Any = get_model("acme:x")
    changed = type(made.settings)(retries=9)
    assert vars_of(get_model("acme:x", settings={"acme": changed})) == ("https://acme.example", 9)


def test_wrong_settings_are_all_named_with_their_file(acme: Shelf) -> None:
    layer = Layer("locus.toml", "plugins.acme", {"urll": "x", "retries": "2"})

    with pytest.raises(SettingsError) as caught:
        get_model("acme:x", settings={"acme": layer})

    assert caught.value.problems == (
        "locus.toml: plugins.acme.urll is not a setting; did you mean 'url'?",
        "locus.toml: plugins.acme.retries is '2'; expected an integer",
    )


def test_settings_of_another_class_are_refused(acme: Shelf) -> None:
    with pytest.raises(SettingsError, match=r"acme=7; expected True, False, a dict or Settings\(\.\.\.\)"):
        get_model("acme:x", settings={"acme": 7})


def test_a_model_is_returned_as_it_is_and_nothing_is_looked_for() -> None:
    mine = Handmade()

    assert get_model(mine, catalogue=Catalogue.only()) is mine


@pytest.mark.parametrize("model", [7, None, Handmade, object()])
def test_what_is_neither_a_name_nor_a_model_is_refused(model: Any) -> None:
    with pytest.raises(
        ConfigError, match="model must be 'provider:model', or an object with a name and a complete method"
    ):
        get_model(model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("large", "model 'large' names no plugin; write 'plugin:large'"),
        (":large", "model ':large' names no plugin; write 'plugin:large'"),
        ("", "model '' names no plugin"),
    ],
)
def test_a_name_without_a_provider_says_how_to_write_one(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        get_model(text, catalogue=Catalogue.only())

    assert message in str(caught.value)


def test_the_name_of_a_provider_alone_says_what_is_missing(acme: Shelf) -> None:
    with pytest.raises(ConfigError, match="model 'acme' is the name of a plugin alone; write 'acme:NAME'"):
        get_model("acme")


def test_a_misspelled_provider_names_the_nearest_and_advises_nobody_to_install_it(acme: Shelf) -> None:
    with pytest.raises(UnknownName) as caught:
        get_model("acmee:large")

    assert str(caught.value) == "unknown model provider 'acmee'; did you mean 'acme'?"


@pytest.mark.parametrize("name", ["zeta", "acorn"])
def test_no_advice_to_install_comes_with_an_unknown_provider(acme: Shelf, name: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown model provider {name!r}") as caught:
        get_model(f"{name}:large")

    assert "pip install" not in str(caught.value)


def test_what_a_factory_raises_carries_the_plugins_name(acme: Shelf) -> None:
    with pytest.raises(OSError, match="no route") as caught:
        get_model("acme:broken")

    assert caught.value.__notes__ == ["while plugin 'acme' made the model 'acme:broken'"]


def test_a_factory_that_makes_no_model_is_the_plugins_error(acme: Shelf) -> None:
    with pytest.raises(PluginError, match=r"its factory must make a Model, got <object object at .*>"):
        get_model("acme:odd")


def test_a_factory_that_cannot_be_imported_is_the_plugins_error(acme: Shelf) -> None:
    with pytest.raises(PluginLoadError, match="toy_no:x cannot be imported: ModuleNotFoundError"):
        provide("checkpointer", "acme:runs.db")


def test_a_factory_that_is_not_a_callable_is_the_plugins_error(shelf: Shelf) -> None:
    shelf.module("toy_bare_models", "make = 7")
    shelf.plugin("bare", provides="{'backend': 'toy_bare_models:make'}")

    with pytest.raises(PluginLoadError, match="toy_bare_models:make is 7; a provided backend must be a callable"):
        provide("backend", "bare:x")


def test_any_kind_is_provided_the_same_way(acme: Shelf) -> None:
    backend: Any = provide("backend", "acme:./folder")

    assert backend.url == "./folder"


def test_a_plugin_without_settings_refuses_some(shelf: Shelf) -> None:
    shelf.module("toy_bare_models", "def make(rest, settings):\n    return (rest, settings)")
    shelf.plugin("bare", provides="{'backend': 'toy_bare_models:make'}")

    assert provide("backend", "bare:x") == ("x", None)
    with pytest.raises(SettingsError, match="the plugin 'bare' takes none"):
        provide("backend", "bare:x", settings={"bare": {"level": 1}})
    with pytest.raises(SettingsError, match="the plugin 'bare' takes none"):
        provide("backend", "bare:x", settings={"bare": 7})
