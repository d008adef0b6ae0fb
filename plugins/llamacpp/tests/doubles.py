"""A double of xllamacpp's server: the same call sequence, so that every moment of it can be reached."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from attrs import define, field

__all__ = ["END", "PROMPT", "USAGE", "Server", "delta"]


def delta(text: str) -> dict[str, Any]:
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


PROMPT = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
END = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
    "timings": {"cache_n": 5, "prompt_n": 2},
}


@define(slots=False)
class Server:
    """Says what its script says; ``endless`` scripts say it until they are stopped."""

    script: list[dict[str, Any]] = field(factory=lambda: [PROMPT, delta("Hel"), delta("lo"), END, USAGE])
    endless: bool = False
    raises: Exception | None = None
    reply: Any = None
    running: int = 0
    most: int = 0
    stopped: int = 0
    said: int = 0
    began: threading.Event = field(factory=threading.Event)
    bodies: list[dict[str, Any]] = field(factory=list)

    def handle_chat_completions(self, body: dict[str, Any], callback: Callable[[dict[str, Any]], bool]) -> Any:
        self.bodies.append(body)
        self.running += 1
        self.most = max(self.most, self.running)
        self.began.set()
        try:
            if self.raises is not None:
                raise self.raises
            while True:
                for chunk in self.script:
                    self.said += 1
                    if callback(chunk):
                        self.stopped += 1
                        return None
                if not self.endless:
                    return self.reply
        finally:
            self.running -= 1
