"""The provider `anthropic` on a real server of the Messages API. No test here asserts a model's judgement."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tests.servers.promises import ADD, GREEDY, ServerPromises, asked
from tests.servers.real import RealServer

from locus import Agent
from locus.core.messages import Message, Role
from locus.plugins.secret import Secret
from locus_plugin_anthropic.listing import models
from locus_plugin_anthropic.model import AnthropicModel, make
from locus_plugin_anthropic.settings import AnthropicSettings

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


def settings(server: RealServer) -> AnthropicSettings:
    return AnthropicSettings(base_url=server.url, api_key=Secret(server.key))


@attrs.frozen
class City:
    name: str
    inhabitants: int


class TestMessages(ServerPromises):
    def make_model(self, server: RealServer) -> AnthropicModel:
        return make(server.model, settings(server))

    async def test_a_prompt_is_counted_as_it_is_charged(self, model: AnthropicModel) -> None:
        request = asked(Message(Role.SYSTEM, "Be brief."), "What is 12 plus 30?", tools=(ADD,))
        assert await model.count_tokens(request) == (await model.complete(request)).usage.prompt_tokens

    async def test_an_answer_by_a_tool_is_decoded_by_its_schema(self, model: AnthropicModel) -> None:
        agent: Agent[Any, City] = Agent(model, output_schema=City, model_settings=GREEDY)
        result = await agent.run("Describe Paris.")
        result.raise_for_failure()
        assert isinstance(result.parsed, City)


def test_the_server_lists_its_model(real_server: RealServer) -> None:
    ((name, _),) = models(settings(real_server))
    assert name.startswith("anthropic:")
