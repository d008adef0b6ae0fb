"""How long it takes from a caller's cancel to the end of the run, in milliseconds, while a model answers.

`python contrib/bench/cancel.py` needs the kernel, the test kit and the plugins openai, anthropic and ollama. Each run
asks a local HTTP server that sends a word every 0.1 seconds, or nothing for 30; another thread cancels it meanwhile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio

from locus import Agent, Hook
from locus.models import Model
from locus.plugins import Secret
from locus_plugin_anthropic.model import make as anthropic
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_plugin_ollama.model import make as ollama
from locus_plugin_ollama.settings import OllamaSettings
from locus_plugin_openai.model import make as openai
from locus_plugin_openai.settings import OpenAISettings
from locus_testkit.localserver import Answer, LocalServer

#: Seconds between two words, and until a server that streams nothing answers.
PAUSE, SILENCE = 0.1, 30.0
_WORDS = [f"w{n} " for n in range(400)]
_KEY = Secret("k", "test")


class FirstChunk(Hook):
    """Says when the first piece of an answer has come."""

    def __init__(self) -> None:
        self.came = threading.Event()

    def on_model_chunk(self, event: object) -> None:
        """Note it."""
        self.came.set()


def _chat(url: str) -> Model:
    return openai("m", OpenAISettings(base_url=url, api_key=_KEY))


def _responses(url: str) -> Model:
    return openai("m", OpenAISettings(base_url=url, api_key=_KEY, api="responses"))


def _anthropic(url: str) -> Model:
    return anthropic("m", AnthropicSettings(base_url=url, api_key=_KEY))


def _ollama(url: str) -> Model:
    return ollama("m", OllamaSettings(base_url=url))


def _named_events() -> Answer:
    usage = {"input_tokens": 9, "output_tokens": 1}
    start = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    for word in _WORDS:
        events.append({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
    return Answer.events(*events, done="", named=True, pause=PAUSE)


def _json_lines() -> Answer:
    lines = ({"model": "x", "message": {"role": "assistant", "content": word}, "done": False} for word in _WORDS)
    body = [(json.dumps(line) + "\n").encode() for line in lines]
    return Answer(body=body, media_type="application/x-ndjson", chunked=True, pause=PAUSE)


CASES: dict[str, tuple[Callable[[str], Model], Answer]] = {
    "openai chat": (
        _chat,
        Answer.events(*({"choices": [{"delta": {"content": word}}]} for word in _WORDS), done="", pause=PAUSE),
    ),
    "openai responses": (
        _responses,
        Answer.events(
            *({"type": "response.output_text.delta", "delta": word} for word in _WORDS), done="", pause=PAUSE
        ),
    ),
    "anthropic": (_anthropic, _named_events()),
    "ollama": (_ollama, _json_lines()),
}


def cancelled_after(make: Callable[[str], Model], answer: Answer, *, streams: bool, backend: str) -> float:
    """Milliseconds from the cancel of one run to its result."""
    with LocalServer() as server:
        server.then(answer if streams else answer.with_fields(pause=SILENCE))
        first = FirstChunk()
        agent: Agent[Any, str] = Agent(make(server.url), hooks=[first] if streams else [])
        at = 0.0

        def stop() -> None:
            nonlocal at
            if streams:
                first.came.wait(10)
            else:
                server.wait_for(lambda: bool(server.received), 5)
            time.sleep(0.2)  # in the middle of the answer, and of nothing that begins it
            at = time.perf_counter()
            agent.cancel()

        async def main() -> str:
            return (await agent.run("x")).stop_reason

        thread = threading.Thread(target=stop)
        thread.start()
        reason = anyio.run(main, backend=backend)
        took = time.perf_counter() - at
        thread.join()
    if reason != "Cancelled":
        raise SystemExit(f"expected a run that was cancelled, got one that ended with {reason}")
    return took * 1000


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each kind on each event loop")
    options = parser.parse_args()
    for name, (make, answer) in CASES.items():
        for streams in (True, False):
            times = [
                cancelled_after(make, answer, streams=streams, backend=backend)
                for backend in ("asyncio", "trio")
                for _ in range(options.runs)
            ]
            how = "streams" if streams else "waits"
            print(f"{name:18}{how:8} median {statistics.median(times):6.1f} ms   most {max(times):6.1f} ms")


if __name__ == "__main__":
    main()
