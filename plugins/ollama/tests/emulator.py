"""`Emulator`: a server that speaks Ollama's protocol, strictly, and answers from a script."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from locus.core.messages import TextBlock, ThinkingBlock, ToolCall
from locus.models.protocol import ModelResponse
from locus_testkit.localserver import Answer, ReceivedRequest
from locus_testkit.scripted_model import blocks_of, never

from .protocol import Refused, check_chat

__all__ = ["NDJSON", "Emulator", "final", "lines", "message_of", "ndjson"]

NDJSON = "application/x-ndjson"

_AT = "2026-03-01T09:30:00.{:09d}Z"


class Emulator:
    """What `LocalServer` calls for each request.

    Args:
        answers: request by request: text, ``call(...)``, lists of those, a `Message`, a `ModelResponse`, a message in
            the server's own form (a dict), an `Answer`, or `never`.
        models: what it has.
        ids: whether it gives calls ids, as newer servers do.
        own: fields that it sends beyond the protocol, and therefore knows when they come back.
        size: characters of a piece of a stream.
    """

    def __init__(
        self,
        *answers: Any,
        models: Sequence[str] = ("tiny:latest",),
        ids: bool = False,
        own: Collection[str] = (),
        size: int = 3,
    ) -> None:
        self.answers = deque(answers)
        self.models, self.ids, self.own, self.size = models, ids, own, size
        #: The bodies of the requests that were accepted, and why others were not.
        self.asked: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self._number = 0

    def __call__(self, request: ReceivedRequest) -> Answer:
        match request.method, request.path:
            case "GET", "/api/tags":
                return Answer.of({"models": [_tag(name) for name in self.models]})
            case "POST", "/api/chat":
                return self._chat(request)
        return Answer(status=404, media_type="text/plain", body="404 page not found")

    def _chat(self, request: ReceivedRequest) -> Answer:
        try:
            body = request.json
            check_chat(body, own=self.own)
        except (Refused, ValueError) as e:
            self.refused.append(str(e))
            return Answer.of({"error": str(e)}, status=400)
        model = body["model"]
        if model not in self.models and f"{model}:latest" not in self.models:
            return Answer.of({"error": f"model '{model}' not found"}, status=404)
        self.asked.append(body)
        return self.answer(body)

    def answer(self, body: dict[str, Any]) -> Answer:
        """What is said to a request that is right."""
        if not self.answers:
            return Answer.of({"error": "the script has no further answer"}, status=500)
        turn = self.answers.popleft()
        if turn is never:
            return Answer(status=0, ending="silent")
        if isinstance(turn, Answer):
            return turn
        message = message_of(turn)
        if self.ids:
            for call in message.get("tool_calls", ()):
                self._number += 1
                call.setdefault("id", f"call_{self._number:08x}")
        ending = final(body, message, turn if isinstance(turn, ModelResponse) else None)
        if not body.get("stream", True):
            return Answer.of({**ending, "message": message})
        size = max(self.size, len(message["content"]) // 500)  # long answers come in longer pieces
        return ndjson(*lines(message, ending, size))


def message_of(turn: Any) -> dict[str, Any]:
    """A message in the server's form."""
    if isinstance(turn, Mapping):
        return dict(turn)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in blocks_of(turn):
        match block:
            case TextBlock():
                texts.append(block.text)
            case ThinkingBlock():
                thoughts.append(block.text)
            case ToolCall():
                index = {"index": len(calls)}
                calls.append({"function": {**index, "name": block.name, "arguments": dict(block.arguments)}})
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message["thinking"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def final(body: Mapping[str, Any], message: Mapping[str, Any], told: ModelResponse | None = None) -> dict[str, Any]:
    """What the last line says beside its message."""
    usage = None if told is None else told.usage
    return {
        "model": body["model"],
        "created_at": _AT.format(len(body["messages"])),
        "done": True,
        "done_reason": "length" if told is not None and told.stop_reason == "length" else "stop",
        "total_duration": 4_883_583_458,
        "load_duration": 1_334_875,
        "prompt_eval_count": usage.prompt_tokens if usage else len(json.dumps(body["messages"])) // 4 + 1,
        "prompt_eval_duration": 342_546_000,
        "eval_count": usage.completion_tokens if usage else len(json.dumps(message)) // 4 + 1,
        "eval_duration": 4_535_599_000,
    }


def lines(message: Mapping[str, Any], ending: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    """A message as it streams: thinking, text, each call, and in the end what else there is."""
    head = {"model": ending["model"], "created_at": "2026-03-01T09:29:59.1Z", "done": False}
    for kind in ("thinking", "content"):
        text = message.get(kind, "")
        for at in range(0, len(text), size):
            piece = text[at : at + size]
            said = {"content": piece} if kind == "content" else {"content": "", "thinking": piece}
            yield {**head, "message": {"role": "assistant", **said}}
    for call in message.get("tool_calls", ()):
        yield {**head, "message": {"role": "assistant", "content": "", "tool_calls": [call]}}
    known = ("role", "content", "thinking", "tool_calls")
    more = {key: value for key, value in message.items() if key not in known}
    yield {**ending, "message": {"role": "assistant", "content": "", **more}}


def ndjson(*events: Any, **fields: Any) -> Answer:
    """An answer in lines, each a piece."""
    body = [json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n" for event in events]
    return Answer(media_type=NDJSON, chunked=True, body=body, **fields)


def _tag(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": "2026-02-14T10:00:00.000000000Z",
        "size": 5_225_387_923,
        "digest": "500a1f067a9f782620b40bee6f7b0c89e17ae61f686b92c24933e4ca4b2b8b41",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "qwen3",
            "families": ["qwen3"],
            "parameter_size": "8.2B",
            "quantization_level": "Q4_K_M",
        },
    }
