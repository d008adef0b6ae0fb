"""Ollama's protocol in front of a real model: the strict emulator, with the answers of a server that speaks OpenAI's.

So what is proved is not only that the protocol is kept, but that a model gets from it what it needs to use tools::

    python -m plugins.ollama.tests.front http://127.0.0.1:8080 KEY

at the top of the checkout prints the address on the first line, and serves until its standard input ends.
"""

from __future__ import annotations

import http.client
import itertools
import json
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from locus_testkit.localserver import Answer, LocalServer

from .emulator import Emulator, lines, ndjson

__all__ = ["Front"]

_OPTIONS = {"temperature": "temperature", "top_p": "top_p", "seed": "seed", "stop": "stop", "num_predict": "max_tokens"}


class Front(Emulator):
    """An Ollama server whose model another server runs.

    Args:
        url: where a server answers ``/v1/chat/completions``.
        key: what that server wants to be sent, or ``""``.
        model: the name that its model has here.
    """

    def __init__(self, url: str, key: str = "", model: str = "tiny:latest") -> None:
        super().__init__(models=(model,), size=8)
        self._place = urlsplit(url).netloc
        self._headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}

    def answer(self, body: dict[str, Any]) -> Answer:
        """What the model says."""
        connection = http.client.HTTPConnection(self._place, timeout=300)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(_to_openai(body)), self._headers)
            response = connection.getresponse()
            said = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            return Answer.of({"error": json.dumps(said)}, status=response.status)
        message, ending = _from_openai(body, said)
        return (
            ndjson(*lines(message, ending, self.size))
            if body.get("stream", True)
            else Answer.of({**ending, "message": message})
        )


def _to_openai(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request in OpenAI's form; calls, which have no ids here, are numbered."""
    numbers = itertools.count()
    waiting: list[str] = []
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        role, content = message["role"], message["content"]
        if role == "tool":
            messages.append({"role": role, "tool_call_id": waiting.pop(0), "content": content})
            continue
        made: dict[str, Any] = {"role": role, "content": content}
        waiting = []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            waiting.append(f"call_{next(numbers)}")
            arguments = json.dumps(function["arguments"], ensure_ascii=False)
            made.setdefault("tool_calls", []).append(
                {"id": waiting[-1], "type": "function", "function": {"name": function["name"], "arguments": arguments}}
            )
        messages.append(made)
    options = body.get("options", {})
    asked: dict[str, Any] = {"messages": messages, "stream": False}
    asked |= {theirs: options[ours] for ours, theirs in _OPTIONS.items() if ours in options}
    if body.get("tools"):
        asked["tools"] = body["tools"]
    if "format" in body:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": body["format"]}}
    return asked


def _from_openai(body: Mapping[str, Any], said: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    (choice,) = said["choices"]
    theirs, usage = choice["message"], said["usage"]
    message: dict[str, Any] = {"role": "assistant", "content": theirs.get("content") or ""}
    if theirs.get("reasoning_content"):
        message["thinking"] = theirs["reasoning_content"]
    for index, call in enumerate(theirs.get("tool_calls") or ()):
        function = {
            "index": index,
            "name": call["function"]["name"],
            "arguments": json.loads(call["function"]["arguments"]),
        }
        message.setdefault("tool_calls", []).append({"function": function})
    ending = {
        "model": body["model"],
        "created_at": f"2026-03-01T09:30:00.{len(body['messages']):09d}Z",
        "done": True,
        "done_reason": "length" if choice["finish_reason"] == "length" else "stop",
        "prompt_eval_count": usage["prompt_tokens"],
        "prompt_eval_cached_count": (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
        "eval_count": usage["completion_tokens"],
    }
    return message, ending


if __name__ == "__main__":
    with LocalServer(Front(*sys.argv[1:])) as server:
        print(server.url, flush=True)  # noqa: T201  # it is what it is started for
        sys.stdin.read()
