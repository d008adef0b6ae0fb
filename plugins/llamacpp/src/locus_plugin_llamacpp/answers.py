"""The chunks of a streamed completion, folded into the completion itself.

llama.cpp gives the whole answer only when nothing is streamed, and only a streamed request can be
stopped; so every request is streamed and the answer is put together here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus_plugin_llamacpp.errors import BadRequest, EngineFailed, PromptTooLong

__all__ = ["Answer", "failure"]

_OVERFLOW = "exceed_context_size_error"


def failure(error: Mapping[str, Any]) -> Exception:
    """The typed error of an ``{"error": ...}`` object of llama.cpp."""
    message, status = str(error.get("message", error)), int(error.get("code", 500))
    if error.get("type") == _OVERFLOW:
        return PromptTooLong(int(error.get("n_prompt_tokens", 0)), int(error.get("n_ctx", 0)))
    if 400 <= status < 500:
        return BadRequest(message, status=status)
    return EngineFailed(f"llama.cpp failed: {message}")


class Answer:
    """Folds chunks in OpenAI's form."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        #: The error that the server reported instead of an answer, or None.
        self.error: Exception | None = None

    def add(self, chunk: Mapping[str, Any]) -> bool:
        """Take one chunk in; whether it carries a piece of the answer."""
        if "error" in chunk:
            self.error = failure(chunk["error"])
            return False
        if not self._head:
            self._head = {key: chunk.get(key) for key in ("id", "model", "created")}
        self._usage = chunk.get("usage") or self._usage
        self._timings = chunk.get("timings") or self._timings
        news = False
        for choice in chunk.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            news = self._delta(choice.get("delta") or {}) or news
        return news

    def _delta(self, delta: Mapping[str, Any]) -> bool:
        if text := delta.get("content"):
            self._text.append(text)
        # What the template of the file marks as thoughts, llama.cpp has told from the text.
        if thought := delta.get("reasoning_content"):
            self._thoughts.append(thought)
        for piece in delta.get("tool_calls") or ():
            call = self._calls.setdefault(
                piece.get("index", 0), {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            )
            call["id"] = piece.get("id") or call["id"]
            function = piece.get("function") or {}
            call["function"]["name"] += function.get("name") or ""
            call["function"]["arguments"] += function.get("arguments") or ""
        return bool(text or thought or delta.get("tool_calls"))

    def whole(self) -> dict[str, Any]:
        """The completion, with ``usage`` and ``timings`` as llama.cpp gave them.

        Raises:
            ModelError: the server reported an error, or ended without a result.
        """
        if self.error is not None:
            raise self.error
        if self._finish is None:
            raise EngineFailed("llama.cpp ended the stream without a result; the request can be tried again")
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": self._finish, "message": message}],
            "usage": self._usage,
            "timings": self._timings,
        }
