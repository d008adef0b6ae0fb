"""A provider of one's own on `locus_wire`, as small as it gets; it speaks the dullest of protocols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from locus.core.messages import Message, Role, TextBlock, ToolCall
from locus.models.protocol import Chunk, ModelRequest, ModelResponse, OnChunk
from locus.plugins.secret import Secret
from locus_testkit.hostile import Answer, Good
from locus_wire import Client, Endpoint, Event, Key, Malformed, check_shape, json_bytes, json_of, tool_call, unique_ids
from locus_wire.pools import Session

CALLS = [{"id": "c", "name": "temperature", "args": f'{{"city": "{city}"}}'} for city in ("Paris", "Rome")]

GOOD = Good(
    whole=Answer.of({"choices": [{"text": "pong"}]}),
    stream=Answer.events({"choices": [{"text": "po"}]}, {"choices": [{"text": "n"}]}, {"choices": [{"text": "g"}]}),
    calls=Answer.of({"choices": [{"calls": CALLS}]}),
    calls_stream=Answer.events(*({"choices": [{"calls": [c]}]} for c in CALLS)),
    empty=Answer.of({"choices": []}),
    empty_stream=Answer.events({"choices": []}),
)


class Toy:
    name = "toy:pong"

    def __init__(self, base_url: str, key: str = "", **options: Any) -> None:
        found = Key(provider="toy", given=Secret(key) if key else None, env=("TOY_KEY",), needed=False)
        self.client = Client(Endpoint.with_key(found, base_url).with_options(**options))

    def session(self) -> Session:
        return self.client.session()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        body = json_bytes({"text": request.messages[-1].text, "stream": on_chunk is not None})
        if on_chunk is None:
            return await self.client.post("/say", body, _read, deadline=request.deadline)
        texts: list[str] = []
        calls: list[ToolCall] = []

        async def take(event: Event) -> bool:
            if event.data == "[DONE]":
                if not texts:
                    raise Malformed("the answer has no choice")
                return True
            with check_shape():
                for choice in json_of(event.data)["choices"]:
                    calls.extend(_calls(choice))
                    texts.append(choice.get("text", ""))
            if texts and texts[-1]:
                await on_chunk(Chunk(texts[-1]))
            return False

        await self.client.events("/say", body, take, deadline=request.deadline)
        return _response("".join(texts), calls)


def _read(data: Any) -> ModelResponse:
    if not data["choices"]:
        raise Malformed("the answer has no choice")
    (choice,) = data["choices"]
    return _response(choice.get("text", ""), _calls(choice))


def _calls(choice: Any) -> list[ToolCall]:
    return [tool_call(c["id"], c["name"], c["args"]) for c in choice.get("calls", ())]


def _response(text: str, calls: Iterable[ToolCall]) -> ModelResponse:
    said = (TextBlock(text),) if text else ()
    return ModelResponse(message=Message(Role.ASSISTANT, (*said, *unique_ids(calls))))
