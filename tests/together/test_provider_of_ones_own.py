"""A provider in fewer than sixty lines keeps every promise of a model, and knows every failure of a server."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from typing import Any

from locus.core.errors import ContextOverflow, ModelError
from locus.core.frozen import thaw
from locus.core.messages import Message, TextBlock, ToolCall
from locus.hooks.secret import Secret
from locus.models import Model, ModelResponse
from locus_testkit import ModelContract, ModelFeatures, Sent, Turn, call
from locus_testkit.hostile import Answer, Good, HostileServerContract
from locus_testkit.localserver import LocalServer, Received
from locus_testkit.scripted import never

PROVIDER = Path(__file__).parents[2] / "contrib" / "examples" / "provider.py"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}


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


def blocks(turn: Any) -> list[Any]:
    message = turn.message if isinstance(turn, ModelResponse) else turn
    content = message.content if isinstance(message, Message) else message
    items = content if isinstance(content, list | tuple) else [content]
    return [TextBlock(item) if isinstance(item, str) else item for item in items]


def said(turn: Any, number: int, *, stream: bool) -> Answer:
    """A turn as Chat Completions tells it."""
    text = "".join(b.text for b in blocks(turn) if isinstance(b, TextBlock))
    calls = [
        {"index": at, "id": b.id or f"call-{number}-{at}", "function": {"name": b.name, "arguments": _json(b)}}
        for at, b in enumerate(b for b in blocks(turn) if isinstance(b, ToolCall))
    ]
    cut = isinstance(turn, ModelResponse) and turn.stop_reason == "length"
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    finish = {"index": 0, "finish_reason": "length" if cut else "tool_calls" if calls else "stop"}
    if not stream:
        return Answer.of({"model": "small", "choices": [{**finish, "message": message}], "usage": USAGE})
    deltas = [{"content": text[at : at + 3]} for at in range(0, len(text), 3)] + [{"tool_calls": [c]} for c in calls]
    pieces = [{"index": 0, "delta": delta} for delta in deltas]
    events = [{"model": "small", "choices": [piece]} for piece in (*pieces, {**finish, "delta": {}})]
    return Answer.events(*events, {"model": "small", "choices": [], "usage": USAGE})


def _json(block: ToolCall) -> str:
    return json.dumps(thaw(block.arguments), ensure_ascii=False, separators=(",", ":"))


class Server:
    """Answers what a script says."""

    def __init__(self, *turns: Turn) -> None:
        self._turns, self._numbers = deque[Any](turns), count(1)
        self.local = LocalServer(self._answer)

    def _answer(self, request: Received) -> Answer:
        turn = self._turns.popleft()
        if turn is never:
            return Answer(status=0, ending="silent")
        if isinstance(turn, ModelError):
            code = "context_length_exceeded" if isinstance(turn, ContextOverflow) else None
            return Answer.of({"error": {"message": str(turn), "code": code}}, status=turn.status or 500)
        return said(turn, next(self._numbers), stream=bool(request.json.get("stream")))


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
        server = Server(*answers)
        server.local.__enter__()
        model: Model = acme(server.local.url)
        _servers[model] = server
        return model

    async def close_model(self, model: Model) -> None:
        server = _servers.pop(model)
        assert server.local.settled(), "a connection was left open"
        server.local.__exit__(None, None, None)

    def sent(self, model: Model) -> Sequence[Sent]:
        asked = [request.json for request in _servers[model].local.received]
        return [Sent(messages=body["messages"], tools=body.get("tools")) for body in asked]


_servers: dict[Model, Server] = {}


class TestAcmeAtAServerThatMisbehaves(HostileServerContract):
    good = Good(
        whole=said("pong", 1, stream=False),
        stream=said("pong", 1, stream=True),
        calls=said([call("temperature", city=c) for c in ("Paris", "Rome")], 1, stream=False),
        calls_stream=said([call("temperature", city=c) for c in ("Paris", "Rome")], 1, stream=True),
        empty=Answer.of({"choices": []}),
        empty_stream=Answer.events({"choices": []}),
    )

    def make_model(self, base_url: str, key: str) -> Model:
        made: Model = acme(base_url, key)
        return made


def test_it_has_fewer_than_sixty_lines() -> None:
    assert len(PROVIDER.read_text(encoding="utf-8").splitlines()) < 60
