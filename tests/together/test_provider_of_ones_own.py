"""A provider in fewer than sixty lines keeps every promise of a model, and knows every failure of a server."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from plugins.openai.tests.emulator import Emulator, chat

from locus.core.messages import TextBlock, ToolCall
from locus.models import Model
from locus.plugins.secret import Secret
from locus_testkit import ModelContract, ModelFeatures, SentRequest, Turn
from locus_testkit.hostile import Answer, Good, HostileServerContract
from locus_testkit.localserver import LocalServer

PROVIDER = Path(__file__).parents[2] / "contrib" / "examples" / "provider.py"


def _loaded() -> Any:
    spec = spec_from_file_location("acme_provider", PROVIDER)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ACME = _loaded()


def acme(url: str, key: str = "a-key") -> Any:
    return ACME.make("small", ACME.AcmeSettings(base_url=url, api_key=Secret(key)))


class TestAcme(ModelContract):
    features = ModelFeatures(
        exact=True,
        parallel_tools=True,
        structured_output=True,
        max_tokens=True,
        failures=True,
        deadline=True,
        wire=True,
    )

    def make_model(self, *answers: Turn) -> Model:
        emulator = Emulator("chat", *answers)
        emulator.server.__enter__()
        model: Model = acme(emulator.server.url)
        _servers[model] = emulator.server
        return model

    async def close_model(self, model: Model) -> None:
        server = _servers.pop(model)
        assert server.wait_until_idle(), "a connection was left open"
        server.__exit__(None, None, None)

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        asked = [request.json for request in _servers[model].received]
        return [SentRequest(messages=body["messages"], tools=body.get("tools")) for body in asked]


_servers: dict[Model, LocalServer] = {}

WHOLE = {"model": "small"}
STREAM = {**WHOLE, "stream": True, "stream_options": {"include_usage": True}}
CALLS = [ToolCall("same", "temperature", {"city": city}) for city in ("Paris", "Rome")]


class TestAcmeAtAServerThatMisbehaves(HostileServerContract):
    good = Good(
        whole=chat([TextBlock("pong")], 1, WHOLE),
        stream=chat([TextBlock("pong")], 1, STREAM),
        calls=chat(CALLS, 1, WHOLE),
        calls_stream=chat(CALLS, 1, STREAM),
        empty=Answer.of({"choices": []}),
        empty_stream=Answer.events({"choices": []}),
    )

    def make_model(self, base_url: str, key: str) -> Model:
        made: Model = acme(base_url, key)
        return made


def test_it_has_fewer_than_sixty_lines() -> None:
    assert len(PROVIDER.read_text(encoding="utf-8").splitlines()) < 60
