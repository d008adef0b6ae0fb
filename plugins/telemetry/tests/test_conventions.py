"""The names that leave this plugin are those of the conventions that are installed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from opentelemetry.semconv.schemas import Schemas

from locus import Agent, Message, ModelRequest, ModelResponse, Role
from locus.models import OnChunk
from locus_plugin_telemetry import conventions as c
from locus_testkit import ScriptedModel

from .kit import Traced

KNOWN = {
    value
    for module in (gen_ai_attributes, gen_ai_metrics, error_attributes, server_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
}


def test_every_name_is_one_of_the_installed_package() -> None:
    names = {value for name, value in vars(c).items() if name.isupper() and isinstance(value, str) and "." in value}
    names |= {value[0] for name, value in vars(c).items() if name.isupper() and isinstance(value, tuple)}
    ours = {name for name in names if re.match(r"(gen_ai|error|server)\.", name)}

    assert len(ours) > 30
    assert ours - KNOWN == set()


def test_the_schema_is_the_newest_of_the_installed_package() -> None:
    newest = max((schema.value for schema in Schemas), key=lambda url: [*map(int, url.rpartition("/")[2].split("."))])

    assert newest == c.SCHEMA_URL


class Located:
    """A model that says where it is."""

    address = "https://models.example:8443"

    def __init__(self, model: ScriptedModel) -> None:
        self.name, self._model = model.name, model

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer as the model does."""
        return await self._model.complete(request, on_chunk)


@pytest.mark.anyio
@pytest.mark.parametrize("streams", [True, False])
async def test_a_call_has_the_id_of_its_answer_its_server_and_the_time_to_the_first_chunk(streams: bool) -> None:
    traced = Traced()
    answer = ModelResponse(message=Message(Role.ASSISTANT, "Hi."), id="resp-1")
    model: Any = Located(ScriptedModel(answer, name="openai:gpt-9", chunks=True))
    agent: Agent[Any, Any] = traced.agent(model)
    run = agent.run("?")
    if streams:
        async for _ in run:
            pass
    else:
        await run

    (chat,) = (span for span in traced.spans_in.get_finished_spans() if span.name == "chat gpt-9")
    about = dict(chat.attributes or {})
    assert about["gen_ai.response.id"] == "resp-1"
    assert (about["server.address"], about["server.port"]) == ("models.example", 8443)
    first = about.get("gen_ai.response.time_to_first_chunk")
    assert (isinstance(first, float), about.get("gen_ai.request.stream")) == (streams, True if streams else None)
    points = traced.points("gen_ai.client.operation.time_to_first_chunk")
    assert [point.count for point in points] == ([1] if streams else [])
    assert all(point.attributes["server.address"] == "models.example" for point in points)
