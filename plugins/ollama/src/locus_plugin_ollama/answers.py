"""From what the server says to a `ModelResponse`: one way for a whole answer and for its lines as they stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from locus.core import EMPTY, encode_data
from locus.core.messages import Block, Message, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models import Chunk, ModelResponse, StopReason
from locus_plugin_ollama.errors import PROVIDER
from locus_wire import Malformed, tool_call, unique_ids
from locus_wire.thinking import ThinkSplitter, ThinkTags

__all__ = ["Answer"]

#: What a message is made of here; everything else in it is kept beside it.
_KNOWN = ("role", "content", "thinking", "tool_calls")

_STOPS: dict[str, StopReason] = {"": "stop", "stop": "stop", "length": "length"}


class Answer:
    """One answer under way.

    A stream says its message in pieces: text and thinking are joined, lists grow, of any other field the last word
    counts.

    Args:
        name: the model, for servers that do not name it.
        turn: how many messages went before, for ids of calls.
        final: the tool whose arguments are shown as text, or None.
        think_tags: how the model marks thoughts in its text.
    """

    def __init__(self, name: str, turn: int, final: str | None = None, *, think_tags: ThinkTags = "leading") -> None:
        self._name, self._turn, self._final = name, turn, final
        self._splitter = ThinkSplitter(think_tags)
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._message: dict[str, Any] = {}
        self._rest: dict[str, Any] = {}
        self.done = False

    def add(self, line: Mapping[str, Any]) -> list[Chunk]:
        """Take a line in, or a whole answer; gives what is new in it. With the last one `done` becomes true.

        Raises:
            Malformed: it is neither a piece of a message nor the end.
            TypeError, AttributeError, KeyError, ValueError: a field is of another kind than the protocol says.
        """
        self.done = line.get("done", False) is True
        if "message" not in line and not self.done:
            raise Malformed("a piece of the answer has neither a message nor an end")
        chunks = self._take_message(line["message"]) if line.get("message") is not None else []
        if self.done:
            chunks += self._keep(self._splitter.finish())
        _merge(self._rest, {key: value for key, value in line.items() if key not in ("message", "done")})
        return chunks

    def _take_message(self, message: Mapping[str, Any]) -> list[Chunk]:
        chunks = []
        if thought := _text(message.get("thinking")):
            self._thoughts.append(thought)
            chunks.append(Chunk(thought, "reasoning"))
        if text := _text(message.get("content")):
            chunks += self._keep(self._splitter.feed(text))
        for raw in message.get("tool_calls") or ():
            call = _call(raw)
            self._calls.append(call)
            chunks.append(Chunk(_chunk_text(call), "text" if call.name == self._final else "tool_call"))
        _merge(self._message, {key: value for key, value in message.items() if key not in _KNOWN})
        return chunks

    def _keep(self, split: tuple[str, str]) -> list[Chunk]:
        thought, text = split
        chunks = []
        if thought:
            self._thoughts.append(thought)
            chunks.append(Chunk(thought, "reasoning"))
        if text:
            self._texts.append(text)
            chunks.append(Chunk(text))
        return chunks

    def response(self) -> ModelResponse:
        """The response, once the answer is complete.

        Raises:
            Malformed: it is not done.
        """
        if not self.done:
            raise Malformed("the answer is not complete: its field done is not true")
        calls = unique_ids(map(self._with_id, self._calls))
        content: list[Block] = []
        if self._thoughts:
            content.append(ThinkingBlock("".join(self._thoughts)))
        if self._texts:
            content.append(TextBlock("".join(self._texts)))
        rest = dict(self._rest)
        model = rest.pop("model", None)
        reason = _text(rest.get("done_reason"))
        stop = _STOPS.get(reason, "other")
        return ModelResponse(
            message=Message(Role.ASSISTANT, (*content, *calls), extras=self._extras(rest)),
            usage=_usage(rest),
            stop_reason="tool_calls" if calls and stop == "stop" else stop,
            model=model if isinstance(model, str) and model else self._name,
        )

    def _with_id(self, call: ToolCall) -> ToolCall:
        """The call, with an id where the server gave none: the same one whenever this answer is read."""
        if call.id:
            return call
        told = f"{self._turn} {self._rest.get('created_at')}"
        made = hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=6).hexdigest()
        return evolve(call, id=f"call_{made}")

    def _extras(self, rest: dict[str, Any]) -> dict[str, Any]:
        kept = {**({"message": self._message} if self._message else {}), **({"response": rest} if rest else {})}
        return {PROVIDER: kept} if kept else {}


def _call(raw: Mapping[str, Any]) -> ToolCall:
    """A call, with everything about it that a `ToolCall` does not say in its extras."""
    function = raw["function"]
    name, arguments = function["name"], function.get("arguments")
    if not isinstance(name, str):
        raise TypeError("the name of a call is not text")
    kept = {key: value for key, value in raw.items() if key != "function"}
    inner = {key: value for key, value in function.items() if key not in ("name", "arguments")}
    if "arguments" in function and not isinstance(arguments, Mapping):
        inner["arguments"] = arguments
    if inner:
        kept["function"] = inner
    call_id = raw.get("id")
    return tool_call(
        call_id if isinstance(call_id, str) else "", name, arguments, extras={PROVIDER: kept} if kept else EMPTY
    )


def _chunk_text(call: ToolCall) -> str:
    return json.dumps(encode_data(call.arguments), ensure_ascii=False) if call.malformed is None else call.malformed


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        known = into.get(key)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)
        else:
            into[key] = list(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value


def _usage(rest: Mapping[str, Any]) -> Usage:
    # What was read from the cache is part of the prompt's count; servers before 0.33 may leave a count of 0 out.
    cached = _count(rest.get("prompt_eval_cached_count"))
    return Usage(
        prompt_tokens=max(_count(rest.get("prompt_eval_count")), cached),
        completion_tokens=_count(rest.get("eval_count")),
        cached_tokens=cached,
    )


def _count(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a count, got {type(value).__name__}")
    return max(0, value)
