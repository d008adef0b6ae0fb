"""What happens between the plugin and a server: agents, errors that say what to do, lists, keys."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import anyio
import pytest
from attrs import frozen

import locus_plugin_timetravel as timetravel
from locus import Agent
from locus.core.codec import encode
from locus.core.errors import ModelError
from locus.core.events import ModelChunkEvent
from locus.core.messages import Message, Role, ThinkingBlock
from locus.journal import MemoryStore
from locus.models.protocol import Chunk, ModelRequest
from locus.plugins.secret import Secret
from locus_plugin_ollama.errors import ModelMissing
from locus_plugin_ollama.listing import models
from locus_plugin_ollama.model import OllamaModel, make
from locus_plugin_ollama.settings import OllamaSettings
from locus_testkit import call
from locus_testkit.localserver import Answer, LocalServer
from locus_testkit.scripted_model import never
from locus_wire.errors import BadAnswer, ContextTooLong, KeyRefused, NotFound, ProviderFailed, TooLate, Unreachable

from .emulator import Emulator, final, lines, message_of, ndjson

KEY = "0123456789abcdef.secret-of-the-cloud"

#: As it is sent by a server whose runner refuses a prompt, with ``truncate`` false.
OVERFLOW = json.dumps(
    {
        "error": {
            "code": 400,
            "message": "request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "type": "exceed_context_size_error",
        }
    }
)


@pytest.fixture
def emulator() -> Emulator:
    return Emulator()


@pytest.fixture
def server(emulator: Emulator) -> Iterator[LocalServer]:
    with LocalServer(emulator) as server:
        yield server
        assert server.wait_until_idle(), "a connection was left open"
    assert emulator.refused == []


@pytest.fixture
def nowhere() -> str:
    """The address of a server that has gone."""
    with LocalServer() as server:
        return server.url


def model_at(url: str, name: str = "tiny", **settings: Any) -> OllamaModel:
    return OllamaModel(name, OllamaSettings(base_url=url, **settings), {})


def hello(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=(Message(Role.USER, "Hi."),), **fields)


async def deaf(chunk: Chunk) -> None:
    """Listens to a stream without a use for it."""


async def failure(model: OllamaModel, request: ModelRequest | None = None, *, listening: bool = False) -> ModelError:
    with anyio.fail_after(10), pytest.raises(ModelError) as caught:
        await model.complete(request or hello(), deaf if listening else None)
    return caught.value


# ----------------------------------------------------------------- agents


@frozen
class City:
    name: str
    warm: bool


def temperature(city: str) -> int:
    """Give the temperature of a city."""
    return {"Paris": 21, "Rome": 25}[city]


@pytest.mark.anyio
async def test_an_agent_thinks_calls_tools_and_streams(emulator: Emulator, server: LocalServer) -> None:
    both = [call("temperature", city="Paris"), call("temperature", city="Rome")]
    emulator.answers.extend([[ThinkingBlock("Two cities."), *both], "21 and 25."])
    agent = Agent(model_at(server.url, think=True), tools=[temperature])
    pieces: list[tuple[str, str]] = []

    async with agent.run("How warm are Paris and Rome?") as run:
        async for event in run:
            if isinstance(event, ModelChunkEvent):
                pieces.append((event.kind, event.text))
    result = run.result

    assert result.text == "21 and 25."
    assert "".join(text for kind, text in pieces if kind == "reasoning") == "Two cities."
    assert "".join(text for kind, text in pieces if kind == "text") == "21 and 25."
    first, second = emulator.asked
    assert (first["think"], first["stream"]) == (True, True)
    turn, *results = second["messages"][-3:]
    assert turn["thinking"] == "Two cities."
    assert [(each["tool_name"], each["content"]) for each in results] == [("temperature", "21"), ("temperature", "25")]
    assert server.connections == 1


@pytest.mark.anyio
@pytest.mark.parametrize("listening", [True, False])
async def test_thoughts_in_tags_are_thinking(emulator: Emulator, server: LocalServer, *, listening: bool) -> None:
    text = "<think>\nTwo or three?\n</think>\n\nThree, without `<think>`."
    emulator.answers.extend([text, "ok", text])
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    answer = (await model_at(server.url).complete(hello(), listen if listening else None)).message
    assert (answer.reasoning, answer.text) == ("Two or three?\n", "Three, without `<think>`.")
    if listening:
        assert "".join(c.text for c in heard if c.kind == "reasoning") == answer.reasoning
        assert "".join(c.text for c in heard if c.kind == "text") == answer.text

    await model_at(server.url).complete(ModelRequest(messages=(*hello().messages, answer, *hello().messages)))
    turn = emulator.asked[-1]["messages"][1]
    assert (turn["thinking"], turn["content"]) == (answer.reasoning, answer.text)

    kept = await model_at(server.url, think_tags="off").complete(hello())
    assert kept.message.text == text


@pytest.mark.anyio
async def test_an_agent_takes_the_settings_of_its_provider(emulator: Emulator, server: LocalServer) -> None:
    emulator.answers.append("pong")

    result = await Agent("ollama:tiny", ollama={"base_url": server.url, "num_ctx": 16384}).run("Hi.")

    assert result.text == "pong"
    assert emulator.asked[0]["options"] == {"num_ctx": 16384}


@pytest.mark.anyio
async def test_a_thread_continues_with_the_bytes_it_had_and_replays_without_a_difference(
    emulator: Emulator, server: LocalServer
) -> None:
    emulator.own = ("mood",)
    emulator.answers.extend([call("temperature", city="Rome"), {**message_of("25."), "mood": {"warm": [1, 2.5, None]}}])
    emulator.answers.extend(["You are welcome.", "Bye."])
    store = MemoryStore()
    for prompt in ("How warm is Rome?", "Thanks.", "Bye."):
        agent = Agent(model_at(server.url), tools=[temperature], checkpointer=store)
        await agent.run(prompt, thread_id="t")

    bodies = [received.body for received in server.received]
    for before, after in pairwise(bodies):
        assert after.startswith(before[: before.index(b'],"tools":')])
    assert b'"mood":{"warm":[1,2.5,null]}' in bodies[-1]
    assert (await timetravel.replay(agent, "t")).difference is None
    assert len(server.received) == len(bodies), "a replay asks nobody"


@pytest.mark.anyio
@pytest.mark.parametrize("listening", [False, True], ids=["whole", "stream"])
async def test_a_typed_answer_comes_as_a_call_where_there_are_tools(
    emulator: Emulator, server: LocalServer, *, listening: bool
) -> None:
    emulator.answers.extend([call("temperature", city="Rome"), call("final_answer", name="Rome", warm=True), "Yes."])
    agent = Agent(model_at(server.url), tools=[temperature], output_schema=City)
    heard = ""

    if listening:
        async with agent.run("Which city?", thread_id="t") as run:
            async for event in run:
                if isinstance(event, ModelChunkEvent) and event.kind == "text":
                    heard += event.text
        result = run.result
    else:
        result = await agent.run("Which city?", thread_id="t")

    assert result.parsed == City("Rome", warm=True)
    assert json.loads(result.text) == {"name": "Rome", "warm": True}
    assert heard == (result.text if listening else "")
    assert "format" not in emulator.asked[-1]


@pytest.mark.anyio
async def test_a_typed_answer_follows_its_schema_without_tools(emulator: Emulator, server: LocalServer) -> None:
    emulator.answers.append('{"name": "Rome", "warm": true}')

    result = await Agent(model_at(server.url), output_schema=City).run("Which city?")

    assert result.parsed == City("Rome", warm=True)
    assert emulator.asked[0]["format"]["required"] == ["name", "warm"]


@pytest.mark.anyio
async def test_many_runs_share_one_model_and_do_not_mix(emulator: Emulator, server: LocalServer) -> None:
    model = model_at(server.url, connections=4)
    emulator.answers.extend(f"word {n}" for n in range(20))
    agent, said = Agent(model), []

    async def ask() -> None:
        said.append((await agent.run("Say a word.")).text)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(ask)

    assert sorted(said) == sorted(f"word {n}" for n in range(20))
    assert server.most <= 4


# ----------------------------------------------------------------- errors that say what to do


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("asked", "has", "told"),
    [
        ("qwen3", ("qwen3:8b", "llama3.2:1b"), "did you mean 'qwen3:8b'? If not, run: ollama pull qwen3"),
        ("lama3.2:1b", ("qwen3:8b", "llama3.2:1b"), "did you mean 'llama3.2:1b'?"),
        ("phi4", ("qwen3:8b", "llama3.2:1b"), "run: ollama pull phi4 (it has qwen3:8b, llama3.2:1b)"),
        ("phi4", (), "run: ollama pull phi4 (it has none yet)"),
        ("qwen3", ("phi4", "qwen3:30b-a3b-instruct-2507-q4_K_M"), "did you mean 'qwen3:30b-a3b-instruct-2507-q4_K_M'?"),
        ("qwen3:1b", ("qwen2:1b", "qwen3:8b-instruct"), "did you mean 'qwen3:8b-instruct'?"),
    ],
)
@pytest.mark.parametrize("listening", [False, True], ids=["whole", "stream"])
async def test_a_model_that_is_not_there_is_named_with_the_nearest_one(  # fixtures and a table
    emulator: Emulator, server: LocalServer, asked: str, has: tuple[str, ...], told: str, *, listening: bool
) -> None:
    emulator.models = has

    error = await failure(model_at(server.url, asked), listening=listening)

    assert isinstance(error, ModelMissing)
    assert (error.status, error.retryable, error.model, error.known) == (404, False, asked, has)
    assert f"has no model '{asked}'; " in str(error)
    assert told in str(error)


@pytest.mark.anyio
async def test_a_model_is_missing_also_where_the_server_does_not_say_what_it_has(server: LocalServer) -> None:
    server.then(Answer.of({"error": 'model "tiny" not found, try pulling it first'}, status=404), Answer(status=500))

    error = await failure(model_at(server.url))

    assert isinstance(error, ModelMissing)
    assert str(error).endswith("run: ollama pull tiny")


@pytest.mark.anyio
async def test_a_wrong_address_is_not_a_missing_model(emulator: Emulator, server: LocalServer) -> None:
    error = await failure(model_at(f"{server.url}/v1"))

    assert type(error) is NotFound
    assert len(server.received) == 1


@pytest.mark.anyio
async def test_a_server_that_does_not_run_is_reported_with_how_to_start_it(nowhere: str) -> None:
    error = await failure(model_at(nowhere))

    assert type(error) is Unreachable
    assert error.retryable
    assert "is ollama running? Start it: ollama serve" in str(error)
    assert f"base_url is {nowhere}" in str(error)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        OVERFLOW,
        "the input length exceeds the context length",
        "the prompt is longer than the context length currently available to the model; shorten the prompt",
    ],
    ids=["of the runner", "older", "without shifting"],
)
async def test_a_prompt_that_is_too_long_is_reported_with_the_setting(server: LocalServer, text: str) -> None:
    server.then(Answer.of({"error": text}, status=400))

    error = await failure(model_at(server.url))

    assert type(error) is ContextTooLong
    assert not error.retryable
    assert "num_ctx in [plugins.ollama]" in str(error)


@pytest.mark.anyio
async def test_an_error_in_the_middle_of_a_stream_is_an_error(server: LocalServer) -> None:
    begun = list(lines(message_of("pong"), final({"model": "tiny", "messages": []}, {}), 1))[:2]
    server.then(ndjson(*begun, {"error": "an error was encountered while running the model"}))

    error = await failure(model_at(server.url), listening=True)

    assert type(error) is ProviderFailed
    assert error.retryable
    assert "an error was encountered while running the model" in str(error)


@pytest.mark.anyio
async def test_an_answer_that_is_not_done_is_not_an_answer(server: LocalServer) -> None:
    told = final({"model": "tiny", "messages": []}, {})
    server.then(Answer.of({**told, "message": message_of("po"), "done": False}))

    assert type(await failure(model_at(server.url))) is BadAnswer


@pytest.mark.anyio
@pytest.mark.parametrize("listening", [False, True], ids=["whole", "stream"])
async def test_a_silent_server_is_given_up_at_the_timeout(
    emulator: Emulator, server: LocalServer, *, listening: bool
) -> None:
    emulator.answers.append(never)

    error = await failure(model_at(server.url, timeout=0.05), listening=listening)

    assert type(error) is TooLate
    assert error.retryable


# ----------------------------------------------------------------- keys


@pytest.mark.anyio
async def test_a_key_is_sent_and_shown_nowhere(
    emulator: Emulator, server: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model = model_at(server.url, api_key=Secret(KEY))
    server.then(Answer.of({"error": f"the key {KEY} is wrong"}, status=401))
    agent, seen = Agent(model), []

    async with agent.run("Hi.", thread_id="t") as run:
        async for event in run:
            seen.append(json.dumps(encode(event), default=str))
    result = run.result

    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert isinstance(result.error, KeyRefused)
    assert "OLLAMA_API_KEY" in str(result.error)
    shown = [*seen, caplog.text, repr(model), repr(vars(model)), repr(result), str(vars(result.error))]
    assert [text for text in shown if KEY in text] == []


@pytest.mark.anyio
async def test_the_key_of_the_environment_goes_to_this_machine(
    emulator: Emulator, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    emulator.answers.append("pong")

    await model_at(server.url).complete(hello())

    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://10.0.0.7", False),
        ("https://ollama.com", True),
        ("https://ollama.com.evil.example", False),
        ("https://models.example", False),
        ("http://localhost:1", True),
    ],
)
def test_the_key_of_the_environment_goes_to_whom_it_is_for_and_not_in_the_clear(
    url: str, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    endpoint = model_at(url).client.endpoint
    assert endpoint.sign is not None

    headers = endpoint.sign(None)  # type: ignore[arg-type]  # it does not look at the request

    assert (headers == {"authorization": f"Bearer {KEY}"}) is sent


@pytest.mark.parametrize(("url", "sent"), [("https://models.example", True), ("http://models.example", False)])
def test_an_address_of_the_environment_gets_the_key_beside_it(
    url: str, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_HOST", url)
    endpoint = make("m").client.endpoint
    assert endpoint.sign is not None
    assert (endpoint.sign(None) != {}) is sent  # type: ignore[arg-type]  # it does not look at the request


# ----------------------------------------------------------------- lists


def test_what_the_server_has_is_listed(emulator: Emulator, server: LocalServer) -> None:
    emulator.models = ("qwen3:8b", "llama3.2:1b")

    assert models(OllamaSettings(base_url=server.url)) == [
        ("ollama:qwen3:8b", "8.2B, Q4_K_M, 5.2 GB."),
        ("ollama:llama3.2:1b", "8.2B, Q4_K_M, 5.2 GB."),
    ]


def test_a_list_may_say_as_little_as_it_likes(server: LocalServer) -> None:
    far = {
        "name": "gpt-oss:120b-cloud",
        "model": "gpt-oss:120b-cloud",
        "size": 384,
        "remote_host": "https://ollama.com",
    }
    server.then(Answer.of({"models": [{"name": "a"}, {"model": "b", "size": 250_000_000, "details": None}, far]}))

    assert models(OllamaSettings(base_url=server.url)) == [
        ("ollama:a", ""),
        ("ollama:b", "0.2 GB."),
        ("ollama:gpt-oss:120b-cloud", "runs at https://ollama.com."),
    ]


def test_a_server_without_models_is_listed_with_how_to_get_one(emulator: Emulator, server: LocalServer) -> None:
    emulator.models = ()

    ((name, note),) = models(OllamaSettings(base_url=server.url))

    assert name == "NAME"
    assert "ollama pull NAME" in note


def test_a_server_may_have_no_list_at_all(server: LocalServer) -> None:
    server.then(Answer.of({"models": None}))

    assert [name for name, _ in models(OllamaSettings(base_url=server.url))] == ["NAME"]


def test_no_server_is_not_a_failure_of_the_list(nowhere: str) -> None:
    ((name, note),) = models(None, {"OLLAMA_HOST": nowhere})

    assert name == "NAME"
    assert nowhere in note
    assert "ollama serve" in note


@pytest.mark.anyio
async def test_models_can_be_listed_from_within_an_event_loop(nowhere: str) -> None:
    assert len(models(None, {"OLLAMA_HOST": nowhere})) == 1


def test_something_else_at_the_address_is_reported(server: LocalServer) -> None:
    server.then(Answer(media_type="text/html", body="<html><title>Printer</title></html>"))

    with pytest.raises(BadAnswer, match="Printer"):
        models(OllamaSettings(base_url=server.url))
