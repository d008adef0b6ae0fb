"""The real runtime with real weights: what no double can show. No test here asserts a model's judgement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus.core.messages import Message, Role, ToolResult
from locus.models.protocol import Chunk, ModelRequest, ModelSettings, OutputSpec
from locus.tools.definition import ToolSpec
from locus_plugin_llamacpp.engine import close_all
from locus_plugin_llamacpp.errors import BadRequest, PromptTooLong
from locus_plugin_llamacpp.model import LlamaCppModel, make
from locus_plugin_llamacpp.runtime import EngineOptions, start
from locus_plugin_llamacpp.settings import LlamaCppSettings

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]
SETTINGS = LlamaCppSettings(n_ctx=2048, max_tokens=64, progress=False)
ADD = ToolSpec(
    name="add",
    description="Add two whole numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
SUM = Message(Role.USER, "What is 12 plus 30?")
STORY = Message(Role.USER, "Write a long story about a river.")


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaCppModel]:
    yield make("qwen2.5-coder-0.5b", SETTINGS)
    close_all()


def ask(*messages: Message, tools: tuple[ToolSpec, ...] = (), **settings: Any) -> ModelRequest:
    return ModelRequest(messages=messages, tools=tools, settings=ModelSettings(**settings))


async def test_a_tool_loop_runs_to_its_answer_on_a_prompt_that_stays_cached(model: LlamaCppModel) -> None:
    first = await model.complete(ask(SUM, tools=(ADD,)))
    (call,) = first.tool_calls
    result = Message(Role.TOOL, ToolResult(call.id, "42", name="add"))
    pieces: list[str] = []

    async def listen(chunk: Chunk) -> None:
        pieces.append(chunk.text)

    second = await model.complete(ask(SUM, first.message, result, tools=(ADD,)), listen)

    assert (call.name, call.arguments) == ("add", {"a": 12, "b": 30})
    assert "42" in second.message.text
    assert "".join(pieces) == second.message.text
    assert len(pieces) > 1
    assert second.usage.cached_tokens > 0.9 * first.usage.prompt_tokens


async def test_a_structured_answer_follows_its_schema(model: LlamaCppModel) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 30}, "people": {"$ref": "#/$defs/Count"}},
        "required": ["city", "people"],
        "additionalProperties": False,
        "$defs": {"Count": {"type": "integer"}},
    }
    output = OutputSpec(name="city", schema=schema)

    for tools in ((), (ADD,)):
        request = ModelRequest(
            messages=(Message(Role.USER, "Name a city."),),
            tools=tools,
            settings=ModelSettings(tool_choice="none"),
            output=output,
        )
        said = json.loads((await model.complete(request)).message.text)
        assert {name: type(value) for name, value in said.items()} == {"city": str, "people": int}


async def test_cancelling_stops_the_generation_at_once(model: LlamaCppModel) -> None:
    await model.prepare()
    pieces = 0

    async def listen(chunk: Chunk) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 3:
            scope.cancel()

    with anyio.CancelScope() as scope:
        await model.complete(ask(STORY, max_tokens=1000), listen)

    assert scope.cancelled_caught
    assert pieces == 3
    with anyio.fail_after(20):  # the slot is free again: 1000 tokens would take longer
        await model.complete(ask(Message(Role.USER, "Hi"), max_tokens=1))


async def test_a_long_prompt_can_be_cancelled_between_its_batches(model: LlamaCppModel) -> None:
    await model.prepare()
    long = Message(Role.USER, "one two three four " * 400)
    answered = False

    with anyio.move_on_after(0.3) as scope:
        await model.complete(ask(long))
        answered = True

    assert scope.cancelled_caught
    assert not answered


async def test_what_the_listener_raises_comes_out(model: LlamaCppModel) -> None:
    async def listen(chunk: Chunk) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await model.complete(ask(STORY), listen)


async def test_runs_share_one_loaded_model(model: LlamaCppModel) -> None:
    other = make("qwen2.5-coder-0.5b", SETTINGS)
    texts: dict[int, str] = {}

    async def run(each: LlamaCppModel, number: int) -> None:
        question = Message(Role.USER, f"Say the number {number}.")
        texts[number] = (await each.complete(ask(question, max_tokens=12))).message.text

    async with anyio.create_task_group() as group:
        for number, each in enumerate((model, other, model, other), 70):
            group.start_soon(run, each, number)

    assert other.engine is model.engine
    assert all(str(number) in text for number, text in texts.items())


async def test_greedy_answers_repeat(model: LlamaCppModel) -> None:
    request = ask(STORY, max_tokens=10)

    assert (await model.complete(request)).message == (await model.complete(request)).message


async def test_an_answer_that_reaches_its_limit_says_length(model: LlamaCppModel) -> None:
    response = await model.complete(ask(STORY, max_tokens=4))

    assert (response.stop_reason, response.usage.completion_tokens) == ("length", 4)


async def test_a_prompt_beyond_the_window_carries_both_numbers(model: LlamaCppModel) -> None:
    with pytest.raises(PromptTooLong) as caught:
        await model.complete(ask(Message(Role.USER, "word " * 3000)))
    assert caught.value.n_prompt > 3000
    assert caught.value.n_ctx == SETTINGS.n_ctx


async def test_a_schema_that_the_runtime_does_not_know_is_a_bad_request(model: LlamaCppModel) -> None:
    odd = OutputSpec(name="odd", schema={"type": "bogus"})

    with pytest.raises(BadRequest, match="bogus"):
        await model.complete(ModelRequest(messages=(SUM,), output=odd))


async def test_native_tool_calls_are_parsed_with_the_packaged_template(model: LlamaCppModel) -> None:
    function = {"name": ADD.name, "description": ADD.description, "parameters": ADD.parameters}
    body = {
        "messages": [{"role": "user", "content": "What is 12 plus 30?"}],
        "tools": [{"type": "function", "function": json.loads(json.dumps(function))}],
        "temperature": 0,
        "max_tokens": 64,
    }

    answer = await model.engine.chat(body)

    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "add"
    assert json.loads(call["function"]["arguments"]) == {"a": 12, "b": 30}


def test_a_model_that_is_closed_as_soon_as_it_is_loaded_ends_and_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)

    assert run_program(LOAD_AND_CLOSE, str(path)) == (0, "failed True\n" * 5 + "leaving\n")


async def test_nobody_can_connect_and_nothing_is_left_in_the_file_system(
    model: LlamaCppModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await model.prepare()
    cached = model.engine._find(lambda done, total: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    server = start(cached, EngineOptions(n_ctx=256))

    assert server.listening_address.startswith("unix://")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - the rule against blocking paths in coroutines wants it so
    assert os.environ["OMP_WAIT_POLICY"]
    assert os.environ["GOMP_SPINCOUNT"]


LOAD_AND_CLOSE = """
import sys
import anyio
from locus_plugin_llamacpp.engine import close_all
from locus_plugin_llamacpp.errors import EngineFailed
from locus_plugin_llamacpp.model import make
from locus_plugin_llamacpp.settings import LlamaCppSettings

async def main():
    for _ in range(5):
        try:
            await make(sys.argv[1], LlamaCppSettings(progress=False)).prepare()
        except EngineFailed as error:
            print("failed", "broken.gguf" in str(error), flush=True)
        await make("qwen2.5-coder-0.5b", LlamaCppSettings(n_ctx=512, progress=False)).prepare()
        close_all()

anyio.run(main)
print("leaving", flush=True)
"""

EXIT = """
import sys, threading
from contextlib import suppress
import anyio
from locus.core.messages import Message, Role
from locus.models.protocol import ModelRequest
from locus_plugin_llamacpp.model import make
from locus_plugin_llamacpp.settings import LlamaCppSettings

began = threading.Event()

async def listen(chunk):
    began.set()

async def main():
    # Python aborts where it ends while a daemon thread writes a traceback, so this one writes none.
    with suppress(Exception):
        await make("qwen2.5-coder-0.5b", LlamaCppSettings(n_ctx=512, progress=False)).complete(
            ModelRequest(messages=(Message(Role.USER, "Count to one thousand."),)), listen
        )

threading.Thread(target=anyio.run, args=(main,), kwargs={"backend": "trio"}, daemon=True).start()
began.wait()
print("leaving", flush=True)
"""


def run_program(code: str, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=100, check=False)
    return done.returncode, done.stdout


def test_a_process_that_ends_while_its_model_generates_ends_cleanly() -> None:
    assert run_program(EXIT) == (0, "leaving\n")


def test_two_event_loops_share_the_loaded_model(model: LlamaCppModel) -> None:
    texts: list[str] = []

    async def run() -> None:
        texts.append((await model.complete(ask(Message(Role.USER, "Say hello."), max_tokens=8))).message.text)

    threads = [threading.Thread(target=anyio.run, args=(run,), kwargs={"backend": b}) for b in ("asyncio", "trio")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(texts) == 2
    assert texts[0] == texts[1]
