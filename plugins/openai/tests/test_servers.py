"""Which server it is decides whose key it gets, and in which form it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, ConfigError
from locus.plugins.discovery import Catalogue
from locus.plugins.secret import Secret
from locus_plugin_openai.listing import default_model, models
from locus_plugin_openai.model import make
from locus_plugin_openai.servers import server_of
from locus_plugin_openai.settings import OpenAISettings
from locus_testkit.localserver import Answer, LocalServer
from locus_wire.client import Outgoing
from locus_wire.errors import KeyMissing, NotFound

from .kit import KEY, model_at

VARIABLES = {
    "OPENAI_API_KEY": "of-openai",
    "AZURE_OPENAI_API_KEY": "of-azure",
    "OPENROUTER_API_KEY": "of-openrouter",
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*VARIABLES, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def proof(settings: OpenAISettings) -> Any:
    endpoint = server_of(settings).endpoint
    assert endpoint.sign is not None
    return endpoint.sign(Outgoing(method="POST", url=endpoint.base_url, headers={}))


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (None, {"authorization": "Bearer of-openai"}),
        ("https://api.openai.com/v1", {"authorization": "Bearer of-openai"}),
        ("https://openrouter.ai/api/v1", {"authorization": "Bearer of-openrouter"}),
        ("https://mine.openai.azure.com", {"api-key": "of-azure"}),
        ("https://api.openai.com.evil.example/v1", {}),
        ("http://api.openai.com/v1", {}),
        ("http://mine.openai.azure.com", {}),
        ("http://127.0.0.1:8080/v1", {}),
    ],
)
@pytest.mark.usefixtures("environment")
def test_a_key_of_the_environment_goes_to_the_one_whose_key_it_is(url: str | None, sent: dict[str, str]) -> None:
    assert proof(OpenAISettings(base_url=url)) == sent


@pytest.mark.usefixtures("environment")
def test_a_version_makes_no_address_one_of_azure() -> None:
    assert proof(OpenAISettings(base_url="https://evil.example/v1", api_version="2025-04-01")) == {}


def test_an_address_of_the_environment_gets_the_key_beside_it(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    assert server_of(OpenAISettings()).endpoint.base_url == "https://models.example/v1"
    assert proof(OpenAISettings()) == {"authorization": "Bearer of-openai"}
    assert proof(OpenAISettings(base_url="https://other.example/v1")) == {}


@pytest.mark.usefixtures("environment")
def test_a_key_that_is_given_goes_where_it_is_given_for() -> None:
    given = OpenAISettings(base_url="https://models.example/v1", api_key=Secret("mine"))
    assert proof(given) == {"authorization": "Bearer mine"}
    assert "mine" not in repr(given)
    assert "mine" not in repr(make("m", given))
    assert "hush" not in repr(OpenAISettings(base_url="https://me:hush@models.example/v1"))


@pytest.mark.anyio
async def test_without_a_key_nothing_is_sent_and_the_text_says_what_to_do(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("OPENAI_API_KEY")
    result = await Agent("openai:gpt-5").run("Hi.")
    assert isinstance(result.error, KeyMissing)
    assert "set OPENAI_API_KEY, or write api_key" in str(result.error)
    with pytest.raises(KeyMissing, match="set OPENAI_API_KEY"):
        make("gpt-5").check_ready()
    make("m", OpenAISettings(base_url="http://localhost:1/v1")).check_ready()


@pytest.mark.parametrize(
    ("url", "version", "base", "path"),
    [
        ("https://mine.openai.azure.com", None, "https://mine.openai.azure.com/openai/v1", "/chat/completions"),
        (
            "https://mine.openai.azure.com/",
            "2025-04-01-preview",
            "https://mine.openai.azure.com/openai",
            "/deployments/my%20gpt/chat/completions",
        ),
        ("https://gate.example/azure/v1", "preview", "https://gate.example/azure/v1", "/chat/completions"),
    ],
)
def test_addresses_of_azure(url: str, version: str | None, base: str, path: str) -> None:
    settings = OpenAISettings(base_url=url, api_version=version)
    server = server_of(settings, {})
    assert (server.kind, server.endpoint.base_url) == ("azure", base)
    assert dict(server.endpoint.query) == ({"api-version": version} if version else {})
    assert make("my gpt", settings)._path == path


@pytest.mark.parametrize(
    ("url", "api", "path"),
    [
        (None, "auto", "/responses"),
        (None, "chat", "/chat/completions"),
        ("http://127.0.0.1:1/v1", "auto", "/chat/completions"),
        ("http://127.0.0.1:1/v1", "responses", "/responses"),
    ],
)
def test_the_form_is_responses_at_openai_and_chat_elsewhere(url: str | None, api: Any, path: str) -> None:
    assert make("m", OpenAISettings(base_url=url, api=api))._path == path


def test_a_model_needs_a_name_and_an_address() -> None:
    with pytest.raises(ConfigError, match="openai:NAME"):
        make(" ")
    with pytest.raises(ConfigError, match="base_url of openai"):
        make("m", OpenAISettings(base_url="models.example"))
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0, got 0"):
        OpenAISettings(timeout=0)


@pytest.mark.anyio
async def test_headers_of_the_settings_are_sent() -> None:
    with LocalServer() as server:
        headers = {"HTTP-Referer": "https://app.example", "X-Title": "App"}
        model = model_at(f"{server.url}/v1", organization="org", project="proj", headers=headers)
        server.then(Answer.of({"choices": [{"message": {"role": "assistant", "content": "pong"}}]}))
        assert (await Agent(model).run("Hi.")).text == "pong"
        sent = server.received[0].headers
    assert (sent["openai-organization"], sent["openai-project"]) == ("org", "proj")
    assert (sent["http-referer"], sent["x-title"]) == ("https://app.example", "App")
    assert sent["authorization"] == f"Bearer {KEY}"


# -- what the command line asks -------------------------------------------------------------------


def test_models_are_those_that_the_server_lists() -> None:
    with LocalServer() as server:
        server.then(Answer.of({"data": [{"id": "b", "owned_by": "me"}, {"id": "a"}]}), Answer(status=404))
        settings = OpenAISettings(base_url=f"{server.url}/v1")
        assert models(settings) == [("openai:a", ""), ("openai:b", "me")]
        assert server.received[0].path == "/v1/models"
        with pytest.raises(NotFound):
            models(settings)
        assert server.wait_until_idle()


def test_without_a_key_there_is_a_way_to_see_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    ((name, note),) = models(None)
    assert name == "openai:MODEL"
    assert "set OPENAI_API_KEY" in note


def test_a_default_is_offered_where_the_key_is() -> None:
    assert default_model({}) is None
    assert default_model({"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "https://models.example"}) is None
    found = default_model({"OPENAI_API_KEY": "x"})
    assert found is not None
    assert found[:2] == (100, "openai:gpt-5")


def test_settings_come_from_a_table() -> None:
    agent = Agent("openai:m", openai={"base_url": "http://127.0.0.1:1/v1", "api": "chat"}, catalogue=Catalogue())
    assert "127.0.0.1:1" in repr(agent.runtime.model)
