"""What the loop relies on, in both forms, and what happens when the server misbehaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from attrs import evolve

from locus.core.messages import Message, ToolCall
from locus.models.protocol import Model
from locus_plugin_openai.model import OpenAIModel
from locus_testkit import Differs, ModelContract, ModelFeatures, PluginContract, SentRequest
from locus_testkit.hostile import Answer, Good, HostileServerContract
from locus_testkit.scripted_model import Turn, call

from .emulator import Emulator, chat, responses
from .kit import model_at

FEATURES = ModelFeatures(
    exact=True,
    parallel_tools=True,
    structured_output=True,
    max_tokens=True,
    failures=True,
    deadline=True,
    wire=True,
    moves=True,
)


class TestPlugin(PluginContract):
    name = "openai"


class _AtAnEmulator(ModelContract):
    form: ClassVar[str] = "chat"

    def make_model(self, *answers: Turn) -> OpenAIModel:
        return self._make(*answers)

    def make_relative(self, differs: Differs, *answers: Turn) -> OpenAIModel:
        return self._make(*answers, host="localhost") if differs == "host" else self._make(*answers, name="qwen3-test")

    def _make(self, *answers: Turn, host: str = "127.0.0.1", name: str = "gpt-test") -> OpenAIModel:
        emulator = Emulator(self.form, *answers)
        emulator.server.__enter__()
        model = model_at(f"{emulator.server.url.replace('127.0.0.1', host)}/v1", self.form, name=name)
        _RUNNING[model] = emulator
        return model

    async def close_model(self, model: Model) -> None:
        assert isinstance(model, OpenAIModel)
        emulator = _RUNNING.pop(model)
        assert emulator.server.wait_until_idle(), "a connection was left open"
        emulator.server.__exit__(None, None, None)

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        assert isinstance(model, OpenAIModel)
        field = "messages" if self.form == "chat" else "input"
        bodies = [request.json for request in _RUNNING[model].server.received]
        return [SentRequest(messages=body[field], tools=body.get("tools")) for body in bodies]


_RUNNING: dict[OpenAIModel, Emulator] = {}


class TestChat(_AtAnEmulator):
    features = FEATURES


class TestResponses(_AtAnEmulator):
    features = evolve(FEATURES, thinking=True, raw_blocks=True)
    form = "responses"
    block_extras = frozenset({"openai.responses"})


def _good(form: str) -> Good:
    says = chat if form == "chat" else responses
    whole, stream = {"model": "m"}, {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    calls = [ToolCall("same", "temperature", call("x", city=city).arguments) for city in ("Paris", "Rome")]
    pong: list[Any] = [call_text("pong")]
    if form == "chat":
        empty = Answer.of({"choices": [], "model": "m"})
        empty_stream = Answer.events({"choices": [], "model": "m"})
    else:
        empty = Answer.of({"output": [], "status": "completed"})
        empty_stream = Answer.events({"type": "response.completed", "response": {"output": []}}, done="")
    return Good(
        whole=says(pong, 1, whole),
        stream=says(pong, 1, stream),
        calls=says(calls, 1, whole),
        calls_stream=says(calls, 1, stream),
        empty=empty,
        empty_stream=empty_stream,
    )


def call_text(text: str) -> Any:
    return Message("assistant", text).content[0]


class TestHostileChat(HostileServerContract):
    good = _good("chat")

    def make_model(self, base_url: str, key: str) -> OpenAIModel:
        return model_at(f"{base_url}/v1", "chat", key)


@pytest.mark.proof  # the table again, in the other form
class TestHostileResponses(HostileServerContract):
    good = _good("responses")

    def make_model(self, base_url: str, key: str) -> OpenAIModel:
        return model_at(f"{base_url}/v1", "responses", key)
