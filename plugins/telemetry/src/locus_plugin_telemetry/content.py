"""Messages as the conventions write them on spans: JSON of roles and parts, texts cut where they are long."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from locus import Message, Role, ToolCall
from locus.core import encode_data
from locus.core.messages import Block, MediaBlock, TextBlock, ThinkingBlock, ToolResult

__all__ = ["Content", "is_content_wanted", "news"]

_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def is_content_wanted(*, setting: bool | None) -> bool:
    """Whether content is captured: the setting, or the environment variable."""
    if setting is not None:
        return setting
    # "true" is what it was before 1.37; the others are those of opentelemetry-util-genai. Events are not emitted here.
    return os.environ.get(_VARIABLE, "").strip().lower() in ("true", "1", "span_only", "span_and_event")


def news(messages: tuple[Message, ...]) -> list[Message]:
    """The messages that are new to a model: those after its last answer.

    The whole history with every call would make a trace grow with the square of a run's length.
    """
    found: list[Message] = []
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            break
        if message.role is not Role.SYSTEM:
            found.append(message)
    return found[::-1]


class Content:
    """Writes content.

    Args:
        max_chars: how much of one text is written.
    """

    __slots__ = ("_most",)

    def __init__(self, max_chars: int) -> None:
        self._most = max_chars

    def text(self, text: str) -> str:
        """A text, cut where it is long."""
        if len(text) <= self._most:
            return text
        return f"{text[: self._most]}... ({len(text)} characters)"

    def messages(self, messages: Iterable[Message]) -> str:
        """Messages, the first one first."""
        shown = [
            {"role": str(message.role.value), "parts": [self._part(block) for block in message.content]}
            for message in messages
        ]
        return json.dumps(shown, ensure_ascii=False)

    def prompt(self, prompt: str) -> str:
        """The user's turn."""
        shown = [{"role": "user", "parts": [{"type": "text", "content": self.text(prompt)}]}]
        return json.dumps(shown, ensure_ascii=False)

    def answer(self, text: str, reasoning: str | None, calls: Iterable[ToolCall], reason: str) -> str:
        """The model's answer."""
        parts: list[dict[str, Any]] = []
        if reasoning:
            parts.append({"type": "reasoning", "content": self.text(reasoning)})
        if text:
            parts.append({"type": "text", "content": self.text(text)})
        parts += [self._part(call) for call in calls]
        return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reason}], ensure_ascii=False)

    def instructions(self, messages: Iterable[Message]) -> str:
        """The system prompt."""
        parts = [{"type": "text", "content": self.text(m.text)} for m in messages if m.role is Role.SYSTEM]
        return json.dumps(parts, ensure_ascii=False)

    def arguments(self, arguments: Mapping[str, Any]) -> str:
        """The arguments of a call."""
        return self.text(json.dumps(encode_data(arguments), ensure_ascii=False))

    def _part(self, block: Block) -> dict[str, Any]:
        if isinstance(block, TextBlock):
            return {"type": "text", "content": self.text(block.text)}
        if isinstance(block, ThinkingBlock):
            return {"type": "reasoning", "content": self.text(block.text)}
        if isinstance(block, ToolCall):
            given: Any = block.malformed if block.malformed is not None else encode_data(block.arguments)
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": self._shorten(given)}
        if isinstance(block, ToolResult):
            content = block.content if isinstance(block.content, str) else [self._part(b) for b in block.content]
            response = self.text(content) if isinstance(content, str) else content
            return {"type": "tool_call_response", "id": block.call_id, "response": response}
        if isinstance(block, MediaBlock):
            # The bytes of an image do not belong in a trace.
            return {"type": "media", "modality": block.kind, "mime_type": block.media_type}
        return {"type": "other"}

    def _shorten(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._shorten(item) for key, item in value.items()}
        return [self._shorten(item) for item in value] if isinstance(value, list) else value
