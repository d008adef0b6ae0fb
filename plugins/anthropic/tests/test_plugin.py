"""The plugin as it is installed, its settings, and what it lists."""

from __future__ import annotations

from typing import Any

import pytest

from locus.core.errors import ConfigError, SettingsError
from locus.models import get_model
from locus.plugins.secret import Secret
from locus.plugins.settings import Layer, structure
from locus_plugin_anthropic import listing
from locus_plugin_anthropic.model import make
from locus_plugin_anthropic.server import ListedModel, client_of
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_testkit import PluginContract
from locus_wire import Outgoing
from locus_wire.errors import KeyMissing


class TestAnthropic(PluginContract):
    name = "anthropic"


def _settings(**values: Any) -> AnthropicSettings:
    return structure(AnthropicSettings, [Layer("locus.toml", "plugins.anthropic", values)], {"MY_KEY": "k-123"})


def test_model_is_made_by_its_name() -> None:
    assert get_model("anthropic:claude-sonnet-5-5").name == "anthropic:claude-sonnet-5-5"


@pytest.mark.parametrize("name", ["", " "])
def test_a_name_is_needed(name: str) -> None:
    with pytest.raises(ConfigError, match="has no model name; write 'anthropic:NAME'"):
        get_model(f"anthropic:{name}")


def test_settings_are_read_from_a_table() -> None:
    own = _settings(api_key={"env": "MY_KEY"}, thinking=2048, cache="1h", betas=["a"], max_tokens=100, timeout=5)
    assert own.api_key == Secret("k-123")
    assert (own.thinking, own.cache, own.betas, own.max_tokens, own.timeout) == (2048, "1h", ("a",), 100, 5.0)
    assert _settings(thinking="adaptive").thinking == "adaptive"


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": "sk-ant-1"},
        {"base_url": "api.anthropic.com"},
        {"base_url": "ftp://x"},
        {"max_tokens": 0},
        {"thinking": 100},
        {"thinking": "maybe"},
        {"cache": "2h"},
        {"structured": "json"},
        {"timeout": 0},
        {"silence": -1},
        {"connections": 0},
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))) as caught:
        _settings(**wrong)
    assert "sk-ant-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "version"),
    [
        ("https://api.anthropic.com", "2026-10-21"),
        ("http://127.0.0.1:8080", "2023-06-01"),
        ("https://anthropic.com.example.org", "2023-06-01"),
        ("https://notanthropic.com", "2023-06-01"),
    ],
)
def test_version_is_the_newest_at_anthropic_and_the_best_known_elsewhere(url: str, version: str) -> None:
    assert AnthropicSettings(base_url=url).api_version == version
    assert AnthropicSettings(base_url=url, version="2099-01-01").api_version == "2099-01-01"


def test_key_is_not_shown() -> None:
    own = AnthropicSettings(api_key=Secret("sk-ant-secret"), auth_token=Secret("tok-secret"))
    model = get_model("anthropic:m", settings={"anthropic": own})
    assert "secret" not in f"{own!r}{model!r}{vars(model)!r}".replace("Secret", "")
    assert "hush" not in repr(AnthropicSettings(base_url="https://me:hush@models.example"))


@pytest.mark.parametrize(
    ("url", "variables", "sent"),
    [
        ("https://api.anthropic.com", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), {"x-api-key": "k"}),
        ("https://api.anthropic.com/v1", ("ANTHROPIC_AUTH_TOKEN",), {"authorization": "Bearer k"}),
        ("https://anthropic.com.evil.example", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), {}),
        ("http://127.0.0.1:8080", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), {}),
    ],
)
def test_a_key_of_the_environment_goes_to_anthropic_and_to_nobody_else(
    url: str, variables: tuple[str, ...], sent: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in variables:
        monkeypatch.setenv(name, "k")
    sign = client_of(AnthropicSettings(base_url=url)).endpoint.sign
    assert sign is not None
    assert sign(Outgoing(method="POST", url=url, headers={})) == sent


def test_a_key_of_the_environment_does_not_travel_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    sign = client_of(AnthropicSettings(base_url="http://api.anthropic.com")).endpoint.sign
    assert sign is not None
    with pytest.raises(KeyMissing, match="write api_key"):
        sign(Outgoing(method="POST", url="http://api.anthropic.com", headers={}))


def test_a_missing_key_is_found_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    with pytest.raises(KeyMissing, match="ANTHROPIC_API_KEY"):
        make("m", AnthropicSettings()).check_ready()
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "t")
    make("m", AnthropicSettings()).check_ready()


# -- lists -------------------------------------------------------------------------------------------


def test_without_a_key_the_list_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    ((name, note),) = listing.models(None)
    assert name == "anthropic:MODEL"
    assert "ANTHROPIC_API_KEY" in note


def test_with_a_key_the_list_is_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def listed(*_: Any) -> list[ListedModel]:
        return [ListedModel("claude-x", "Claude X")]

    monkeypatch.setattr(listing, "list_models", listed)
    assert listing.models(AnthropicSettings(api_key=Secret("k"))) == [("anthropic:claude-x", "Claude X")]


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_key_in_the_environment_offers_a_default(variable: str) -> None:
    assert listing.default_model({}) is None
    assert listing.default_model({variable: " "}) is None
    found = listing.default_model({variable: "k"})
    assert found is not None
    assert found[0] == 100
    assert found[1].startswith("anthropic:claude-")
    assert variable in found[2]
