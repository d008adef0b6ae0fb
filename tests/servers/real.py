"""What tests know of the real server."""

from __future__ import annotations

from attrs import field, frozen

__all__ = ["MODEL", "WINDOW", "RealServer"]

#: Tokens of the context window.
WINDOW = 4096

#: The name by which the server knows its model; also that of the weights.
MODEL = "qwen2.5-coder-0.5b"


@frozen
class RealServer:
    """A server of llama.cpp.

    Args:
        url: ``"http://127.0.0.1:PORT"``; OpenAI's forms and Anthropic's are below ``/v1``.
        key: what it wants to be sent.
        model: what it calls its model.
        window: tokens of its context window.
        ollama: where Ollama's protocol stands in front of it.
    """

    url: str
    key: str = field(repr=False)
    model: str = MODEL
    window: int = WINDOW
    ollama: str = ""
