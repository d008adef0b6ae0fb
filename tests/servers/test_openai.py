"""The provider `openai` on a real server, in both forms. No test here asserts a model's judgement."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tests.servers.promises import GREEDY, ServerPromises
from tests.servers.real import RealServer

from locus import Agent
from locus.models.protocol import ModelResponse
from locus.plugins.secret import Secret
from locus_plugin_openai.listing import models
from locus_plugin_openai.model import OpenAIModel, make
from locus_plugin_openai.settings import OpenAISettings

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


def settings(server: RealServer, **more: Any) -> OpenAISettings:
    return OpenAISettings(**{"base_url": f"{server.url}/v1", "api": "chat", "api_key": Secret(server.key), **more})


@attrs.frozen
class City:
    name: str
    inhabitants: int
    river: str | None = None


class TestChat(ServerPromises):
    def make_model(self, server: RealServer) -> OpenAIModel:
        return make(server.model, settings(server))


class TestResponses(ServerPromises):
    cut_off = "stop"  # this server calls it complete

    def make_model(self, server: RealServer) -> OpenAIModel:
        return make(server.model, settings(server, api="responses"))

    def said(self, response: ModelResponse) -> str:
        # Each item that it says has an id of its own.
        return response.message.text


@pytest.mark.parametrize("strict", [True, False])
async def test_an_answer_is_decoded_by_its_schema(real_server: RealServer, strict: bool) -> None:
    """In Chat Completions: in Responses this server reads no schema."""
    model = make(real_server.model, settings(real_server, strict=strict))
    agent: Agent[Any, City] = Agent(model, output_schema=City, model_settings=GREEDY)
    result = await agent.run("Describe Paris.")
    result.raise_for_failure()
    assert isinstance(result.parsed, City)
    assert result.iterations == 1


def test_the_server_lists_its_model(real_server: RealServer) -> None:
    assert f"openai:{real_server.model}" in [name for name, _ in models(settings(real_server))]
