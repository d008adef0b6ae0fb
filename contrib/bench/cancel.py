"""How long it takes from a caller's cancel to the end of the run, in milliseconds, while a model answers.

`python contrib/bench/cancel.py [--gguf FILE]` needs the kernel, the test kit and the plugins openai, anthropic, ollama
and oci, and with ``--gguf`` llamacpp. Each run asks a local HTTP server that sends a word every 0.1 seconds, or nothing
for 30; another thread cancels it meanwhile. Requests of oci are signed, and the server checks the signatures.

The embedded model writes a story, or reads a prompt of some 3,000 tokens.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

from locus import Agent, Hook
from locus.models import Model
from locus.plugins import Secret
from locus_plugin_anthropic.model import make as anthropic
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_plugin_oci.model import make as oci
from locus_plugin_oci.settings import OciSettings
from locus_plugin_ollama.model import make as ollama
from locus_plugin_ollama.settings import OllamaSettings
from locus_plugin_openai.model import make as openai
from locus_plugin_openai.settings import OpenAISettings
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest

#: Seconds between two words, and until a server that streams nothing answers.
PAUSE, SILENCE = 0.1, 30.0
_WORDS = [f"w{n} " for n in range(400)]
_KEY = Secret("k", "test")


#: Of the plugin's own tests: a key pair, and the check of signatures that does nothing else than the service.
sys.path.append(str(Path(__file__).parents[2] / "plugins" / "oci" / "tests"))
verification: Any = import_module("verification")
_KEYS = verification.Keys.recorded()
_PROFILE = verification.write_profile(Path(tempfile.mkdtemp()), _KEYS)


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


def _oci(name: str) -> Callable[[str], Model]:
    def make(url: str) -> Model:
        return oci(name, OciSettings(config_file=str(_PROFILE), compartment="ocid1.compartment.oc1..x", endpoint=url))

    return make


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
    "oci generic": (
        _oci("google.gemini-2.5-pro"),
        Answer.events(
            *({"index": 0, "message": {"content": [{"type": "TEXT", "text": word}]}} for word in _WORDS),
            done="",
            pause=PAUSE,
        ),
    ),
    "oci cohere": (
        _oci("cohere.command-a-03-2025"),
        Answer.events(*({"apiFormat": "COHERE", "text": word} for word in _WORDS), done="", pause=PAUSE),
    ),
    "oci chat": (
        _oci("openai.gpt-5.5"),
        Answer.events(*({"choices": [{"delta": {"content": word}}]} for word in _WORDS), done="", pause=PAUSE),
    ),
}


def cancelled_after(name: str, *, streams: bool, backend: str) -> float:
    """Milliseconds from the cancel of one run to its result."""
    make, answer = CASES[name]
    streamed = answer if streams else answer.with_fields(pause=SILENCE)
    with LocalServer() as server:
        if name.startswith("oci"):
            server.answering = lambda request: _signed(request, streamed)
        else:
            server.then(streamed)
        begun = None if streams else lambda: server.wait_for(lambda: bool(server.received), 5)
        return _measure(make(server.url), "x", begun, backend)


def _signed(request: ReceivedRequest, answer: Answer) -> Answer:
    why = verification.unsigned_because(_KEYS, request.method, request.path, request.headers, request.body)
    return Answer.of({"code": "NotAuthenticated", "message": why}, status=401) if why else answer


def _measure(model: Model, prompt: str, begun: Callable[[], object] | None, backend: str) -> float:
    """Milliseconds from the cancel of one run to its result.

    Args:
        model: who is asked.
        prompt: what.
        begun: waits until the request is under way; None = wait for the first piece of the answer.
        backend: the event loop.
    """
    first, at = FirstChunk(), 0.0
    agent: Agent[Any, str] = Agent(model, hooks=[first] if begun is None else [])

    def stop() -> None:
        nonlocal at
        if begun is None:
            first.came.wait(60)
        else:
            begun()
        time.sleep(0.2)  # in the middle of the answer, and of nothing that begins it
        at = time.perf_counter()
        agent.cancel()

    async def main() -> str:
        return (await agent.run(prompt)).stop_reason

    thread = threading.Thread(target=stop)
    thread.start()
    reason = anyio.run(main, backend=backend)
    took = time.perf_counter() - at
    thread.join()
    if reason != "Cancelled":
        raise SystemExit(f"expected a run that was cancelled, got one that ended with {reason}")
    return took * 1000


def embedded_after(model: Model, *, streams: bool, backend: str) -> float:
    """The same for a model in a process of its own."""
    if streams:
        return _measure(model, "Write a very long story about a river.", None, backend)
    # Another prompt each time: the engine remembers what it has read.
    return _measure(model, f"{time.time()} " + "word and other words " * 800, lambda: None, backend)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each kind on each event loop")
    parser.add_argument("--gguf", type=Path, help="weights of an embedded model, which is measured too")
    options = parser.parse_args()
    ways: dict[str, Callable[..., float]] = {name: partial(cancelled_after, name) for name in CASES}
    if options.gguf is not None:
        llamacpp: Any = import_module("locus_plugin_llamacpp.model")
        settings = import_module("locus_plugin_llamacpp.settings").LlamaCppSettings(progress=False, max_tokens=4000)
        model = llamacpp.make(str(options.gguf), settings)
        anyio.run(model.prepare)
        ways["embedded"] = partial(embedded_after, model)
    for name, measure in ways.items():
        for streams in (True, False):
            times = [
                measure(streams=streams, backend=backend)
                for backend in ("asyncio", "trio")
                for _ in range(options.runs)
            ]
            how = "streams" if streams else "waits"
            print(f"{name:18}{how:8} median {statistics.median(times):6.1f} ms   most {max(times):6.1f} ms")


if __name__ == "__main__":
    main()
