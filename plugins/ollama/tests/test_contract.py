"""The promises of a plugin and of a model, kept against the strict emulator."""

from __future__ import annotations

from typing import Any

import pytest

from locus.models.protocol import Model
from locus.plugins.secret import Secret
from locus_plugin_ollama.model import OllamaModel, make
from locus_plugin_ollama.settings import OllamaSettings
from locus_testkit import Differs, ModelContract, ModelFeatures, PluginContract, SentRequest, call
from locus_testkit.hostile import Good, HostileFeatures, HostileServerContract
from locus_testkit.localserver import Answer, LocalServer

from .emulator import Emulator, final, lines, message_of, ndjson

_BODY = {"model": "tiny", "messages": []}
_PONG = message_of("pong")
_CALLS = message_of([call("temperature", city="Paris"), call("temperature", city="Rome")])
for _call in _CALLS["tool_calls"]:
    _call["id"] = "call_1"


class TestPlugin(PluginContract):
    name = "ollama"


class _Served(OllamaModel):
    """A model with the server that it asks."""

    def __init__(self, emulator: Emulator, model: str = "tiny", host: str = "127.0.0.1") -> None:
        self.emulator = emulator
        self.server = LocalServer(emulator)
        self.server.__enter__()
        super().__init__(model, OllamaSettings(base_url=self.server.url.replace("127.0.0.1", host)))

    async def aclose(self) -> None:
        assert self.server.wait_until_idle(), "a connection was left open"
        self.server.__exit__(None, None, None)
        assert self.emulator.refused == []


class TestModel(ModelContract):
    features = ModelFeatures(
        exact=True, parallel_tools=True, structured_output=True, max_tokens=True, deadline=True, wire=True, moves=True
    )
    ids = False

    def make_model(self, *answers: Any) -> Model:
        return _Served(Emulator(*answers, ids=self.ids))

    def make_relative(self, differs: Differs, *answers: Any) -> Model:
        emulator = Emulator(*answers, models=("tiny:latest", "small:latest"), ids=self.ids)
        return _Served(emulator, host="localhost") if differs == "host" else _Served(emulator, "small")

    def sent_requests(self, model: Model) -> list[SentRequest]:
        assert isinstance(model, _Served)
        return [SentRequest(messages=body["messages"], tools=body.get("tools")) for body in model.emulator.asked]


@pytest.mark.proof
class TestModelOfAServerThatNumbersCalls(TestModel):
    ids = True


class TestHostile(HostileServerContract):
    features = HostileFeatures(choices=False)
    good = Good(
        whole=Answer.of({**final(_BODY, _PONG), "message": _PONG}),
        stream=ndjson(*lines(_PONG, final(_BODY, _PONG), 1)),
        calls=Answer.of({**final(_BODY, _CALLS), "message": _CALLS}),
        calls_stream=ndjson(*lines(_CALLS, final(_BODY, _CALLS), 1)),
    )

    def make_model(self, base_url: str, key: str) -> Model:
        return make("tiny", OllamaSettings(base_url=base_url, api_key=Secret(key)))
