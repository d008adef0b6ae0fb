"""A token that expires: whichever provider sends it asks for it with each request, and nobody sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus.core.errors import ModelError
from locus.core.messages import Message, Role
from locus.models import ModelRequest, get_model
from locus.plugins import Secret
from locus_testkit.localserver import Answer, LocalServer
from locus_testkit.tokens import ExpiringToken

pytestmark = pytest.mark.anyio

Given = Callable[[str, Secret], dict[str, Any]]

PROVIDERS: dict[str, Given] = {
    "openai:gpt-5": lambda url, secret: {"base_url": url, "api": "chat", "api_key": secret},
    "openai:gpt-6": lambda url, secret: {"base_url": url, "api": "responses", "api_key": secret},
    "anthropic:claude-a": lambda url, secret: {"base_url": url, "api_key": secret},
    "anthropic:claude-b": lambda url, secret: {"base_url": url, "auth_token": secret},
    "ollama:qwen3": lambda url, secret: {"base_url": url, "api_key": secret},
    "oci:openai.gpt-5.5": lambda url, secret: {"endpoint": url, "region": "us-chicago-1", "api_key": secret},
}


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_token_is_asked_for_with_each_request_and_never_shown(
    name: str, later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    token = ExpiringToken()
    caplog.set_level("DEBUG")
    with LocalServer() as server:
        provider = name.partition(":")[0]
        settings = PROVIDERS[name](server.url, Secret(token.aget if later else token.get))
        model = get_model(name, settings={provider: settings})
        shown = [repr(model), repr(settings)]
        for at in range(2):
            known = len(token.given)
            server.then(Answer.of({"error": {"message": f"not hush-hush-{known}"}}, status=500))
            with pytest.raises(ModelError) as caught:
                await model.complete(ModelRequest(messages=(Message(Role.USER, "Hi."),)))
            shown += [repr(caught.value), str(caught.value)]
            assert any(f"hush-hush-{known}" in value for value in server.received[at].headers.values())
    assert "hush-hush" not in "\n".join(shown) + caplog.text


@pytest.mark.parametrize("name", ["openai:gpt-5", "anthropic:claude-a", "anthropic:claude-b"])
async def test_an_async_token_is_not_asked_for_before_the_run(name: str) -> None:
    asked: list[str] = []

    async def token() -> str:
        asked.append(name)
        return "hush"

    provider = name.partition(":")[0]
    model: Any = get_model(name, settings={provider: PROVIDERS[name]("http://127.0.0.1:9", Secret(token))})
    model.check_ready()
    assert asked == []
