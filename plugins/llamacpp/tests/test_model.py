"""The model keeps the promises of the kernel's Model protocol, and those of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from locus.core.errors import UnknownName
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models.protocol import Chunk, Model, ModelRequest, ModelResponse, ModelSettings, OutputSpec
from locus.tools.definition import ToolSpec
from locus_plugin_llamacpp import engine as engine_module
from locus_plugin_llamacpp.catalogue import PackagedModel
from locus_plugin_llamacpp.engine import close_all
from locus_plugin_llamacpp.history import call_text
from locus_plugin_llamacpp.manifest import plugin
from locus_plugin_llamacpp.model import LlamaCppModel, available, make
from locus_plugin_llamacpp.runtime import EngineOptions
from locus_plugin_llamacpp.settings import LlamaCppSettings
from locus_testkit.contracts import ModelContract, ModelFeatures, SentRequest
from locus_testkit.scripted_model import Turn, never

from .conftest import FakeModel
from .doubles import PROMPT, USAGE, delta

QUIET = LlamaCppSettings(progress=False)
LOOK = ToolSpec(
    name="look",
    description="Look.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)
GO = ToolSpec(name="go", description="Go.", parameters={"type": "object", "properties": {}})
HELLO = Message(Role.USER, "Hello")


@define
class Scripted:
    """A server that gives one answer a request, in the form that the request's schema asks for."""

    answers: list[Any] = field(factory=list)
    bodies: list[dict[str, Any]] = field(factory=list)
    thoughts: str = ""

    def handle_chat_completions(self, body: dict[str, Any], callback: Callable[[dict[str, Any]], bool]) -> None:
        self.bodies.append(body)
        answer = self.answers.pop(0) if self.answers else "pong"
        if answer is never and "pong" in body["messages"][-1]["content"]:
            # The request that was to wait for ever may have been cancelled before it came here.
            answer = self.answers.pop(0)
        finish = "stop"
        if isinstance(answer, ModelResponse):
            finish = answer.stop_reason
            answer = answer.tool_calls[0] if answer.tool_calls else answer.message.text
        while answer is never:
            if callback(PROMPT):
                return
            time.sleep(0.001)  # a batch of the prompt: the real server computes without the interpreter's lock
        text = self._write(answer, "anyOf" in body.get("json_schema", {}))
        size = max(3, len(text) // 100)
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        pieces = [delta(text[at : at + size]) for at in range(0, len(text), size)]
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"reasoning_content": letter}}]} for letter in self.thoughts
        ]
        any(callback(chunk) for chunk in (PROMPT, *chunks, *pieces, end, USAGE))

    def _write(self, answer: Any, wrapped: bool) -> str:
        if isinstance(answer, ToolCall):
            return call_text(answer.name, answer.arguments) if answer.malformed is None else answer.malformed
        return call_text("submit_answer", {"answer": answer}) if wrapped else str(answer)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Scripted]:
    made = Scripted()
    monkeypatch.setattr(engine_module, "start_worker", lambda path, options, waits: made)
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    yield made
    close_all()


@pytest.fixture
def model(server: Scripted, tmp_path: Path) -> LlamaCppModel:
    return make(str(tmp_path / "x.gguf"), QUIET)


class TestContract(ModelContract):
    """Every promise of the protocol that a server of scripted answers can show."""

    features = ModelFeatures(exact=True, structured_output=True, max_tokens=True, deadline=True, moves=True)

    @pytest.fixture(autouse=True)
    def _server(self, server: Scripted, tmp_path: Path) -> None:
        self.server, self.file = server, tmp_path / "x.gguf"

    def make_model(self, *answers: Turn) -> Model:
        self.server.answers = list(answers)
        return make(str(self.file), QUIET)

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        return [SentRequest(messages=body["messages"]) for body in self.server.bodies]


# ----------------------------------------------------------------- what is asked


@pytest.mark.anyio
async def test_settings_of_the_request_come_before_those_of_the_plugin(server: Scripted, tmp_path: Path) -> None:
    model = make(str(tmp_path / "x.gguf"), LlamaCppSettings(temperature=0.5, seed=3, max_tokens=9, progress=False))

    await model.complete(ModelRequest(messages=(HELLO,)))
    settings = ModelSettings(temperature=0.0, seed=4, max_tokens=5, extras={"top_k": 7, "messages": "no"})
    await model.complete(ModelRequest(messages=(HELLO,), settings=settings))

    first, second = server.bodies
    assert (first["temperature"], first["seed"], first["max_tokens"]) == (0.5, 3, 9)
    assert (second["temperature"], second["seed"], second["max_tokens"], second["top_k"]) == (0.0, 4, 5, 7)
    assert second["messages"] == [{"role": "user", "content": "Hello"}]


@pytest.mark.anyio
async def test_stop_texts_are_written_as_the_model_writes_them(server: Scripted, model: LlamaCppModel) -> None:
    settings = ModelSettings(stop=("\n\n",))
    await model.complete(ModelRequest(messages=(HELLO,), settings=settings))
    await model.complete(ModelRequest(messages=(HELLO,), settings=settings, tools=(LOOK,)))

    assert [body["stop"] for body in server.bodies] == [["\n\n"], ["\\n\\n"]]


@pytest.mark.anyio
async def test_decoding_is_constrained_exactly_when_there_is_something_to_keep_to(
    server: Scripted, model: LlamaCppModel
) -> None:
    output = OutputSpec(name="n", schema={"type": "integer"})
    server.answers = ["hi", "hi", "1"]
    for request in (
        ModelRequest(messages=(HELLO,)),
        ModelRequest(messages=(HELLO,), tools=(LOOK,)),
        ModelRequest(messages=(HELLO,), output=output),
    ):
        await model.complete(request)

    assert [body.get("json_schema", {}).keys() for body in server.bodies] == [set(), {"anyOf"}, {"type"}]


# ----------------------------------------------------------------- what comes back


@pytest.mark.anyio
async def test_usage_tells_what_was_cached_and_costs_nothing(server: Scripted, model: LlamaCppModel) -> None:
    response = await model.complete(ModelRequest(messages=(HELLO,)))

    assert (response.usage.prompt_tokens, response.usage.completion_tokens, response.usage.cached_tokens) == (7, 2, 5)
    assert model.price.of(response.usage) == 0
    assert response.model == model.name


@pytest.mark.anyio
@pytest.mark.parametrize("listening", [True, False])
async def test_thoughts_that_llama_cpp_tells_from_the_text_are_thinking(
    server: Scripted, model: LlamaCppModel, *, listening: bool
) -> None:
    server.thoughts = "Two or three?"
    server.answers = ["Three.", "ok"]
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    response = await model.complete(ModelRequest(messages=(HELLO,)), listen if listening else None)

    assert response.message.content == (ThinkingBlock("Two or three?"), TextBlock("Three."))
    if listening:
        assert "".join(chunk.text for chunk in heard if chunk.kind == "reasoning") == "Two or three?"
        assert "".join(chunk.text for chunk in heard if chunk.kind == "text") == "Three."
    await model.complete(ModelRequest(messages=(HELLO, response.message, HELLO)))
    assert server.bodies[-1]["messages"][1] == {"role": "assistant", "content": "Three."}


@pytest.mark.anyio
async def test_the_answer_streams_out_of_its_wrapping(server: Scripted, model: LlamaCppModel) -> None:
    server.answers = ['He said "no".\nThen left.']
    heard: list[Chunk] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk)

    response = await model.complete(ModelRequest(messages=(HELLO,), tools=(LOOK,)), listen)

    assert response.message.content == (TextBlock('He said "no".\nThen left.'),)
    assert "".join(chunk.text for chunk in heard) == response.message.text
    assert len(heard) > 3
    assert {chunk.kind for chunk in heard} == {"text"}


@pytest.mark.anyio
async def test_a_call_that_was_cut_is_malformed_and_says_length(server: Scripted, model: LlamaCppModel) -> None:
    cut = ToolCall("", "look", malformed='{"tool": "look", "args": {"at": "th')
    server.answers = [ModelResponse(message=Message(Role.ASSISTANT, cut), stop_reason="length")]

    response = await model.complete(ModelRequest(messages=(HELLO,), tools=(LOOK,)))

    assert response.stop_reason == "length"
    assert response.tool_calls[0].malformed == '{"tool": "look", "args": {"at": "th'


# ----------------------------------------------------------------- the repeat guard


def after_looking() -> Sequence[Message]:
    call = ToolCall("call_1", "look", {"at": "sea"})
    return HELLO, Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (ToolResult("call_1", "blue"),))


def tools_in(body: dict[str, Any]) -> list[str]:
    return [each["properties"]["tool"]["const"] for each in body["json_schema"]["anyOf"]]


@pytest.mark.anyio
async def test_a_repeated_call_is_asked_again_without_that_tool(server: Scripted, model: LlamaCppModel) -> None:
    server.answers = [ToolCall("", "look", {"at": "sea"}), "It is blue."]
    heard: list[str] = []

    async def listen(chunk: Chunk) -> None:
        heard.append(chunk.text)

    response = await model.complete(ModelRequest(messages=tuple(after_looking()), tools=(LOOK, GO)), listen)

    assert response.message.text == "It is blue."
    assert "".join(heard) == "It is blue."
    assert [tools_in(body) for body in server.bodies] == [["look", "go", "submit_answer"], ["go", "submit_answer"]]
    assert server.bodies[0]["messages"] == server.bodies[1]["messages"]
    assert response.usage.prompt_tokens == 14, "both tries are counted"


@pytest.mark.anyio
async def test_a_model_that_only_repeats_is_brought_to_its_answer(server: Scripted, model: LlamaCppModel) -> None:
    messages = (
        *after_looking(),
        Message(Role.ASSISTANT, (ToolCall("call_2", "go"),)),
        Message(Role.TOOL, (ToolResult("call_2", "gone"),)),
    )
    server.answers = [ToolCall("", "look", {"at": "sea"}), ToolCall("", "go"), "Done."]

    response = await model.complete(ModelRequest(messages=messages, tools=(LOOK, GO)))

    assert response.message.text == "Done."
    assert tools_in(server.bodies[-1]) == ["submit_answer"]


@pytest.mark.anyio
async def test_the_guard_can_be_switched_off(server: Scripted, tmp_path: Path) -> None:
    model = make(str(tmp_path / "x.gguf"), LlamaCppSettings(repeat_guard=False, progress=False))
    server.answers = [ToolCall("", "look", {"at": "sea"})]

    response = await model.complete(ModelRequest(messages=tuple(after_looking()), tools=(LOOK,)))

    assert [call.name for call in response.tool_calls] == ["look"]


# ----------------------------------------------------------------- names, engines, manifest


def test_a_name_that_nothing_answers_to_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'qwen2\.5-coder-1\.5b'"):
        make("qwen2.5-coder-1.5")


@pytest.mark.anyio
async def test_models_of_one_file_share_an_engine_and_others_do_not(server: Scripted, tmp_path: Path) -> None:
    path = str(tmp_path / "x.gguf")
    first, same = make(path, QUIET), make(path, LlamaCppSettings(temperature=0.9, progress=False))
    other = make(path, LlamaCppSettings(n_ctx=512, progress=False))

    assert first.engine is same.engine
    assert first.engine is not other.engine


@pytest.mark.anyio
async def test_the_packaged_models_speak_chatml_and_a_file_its_own_template(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fake_model: FakeModel,
    put_in_catalogue: Callable[[PackagedModel], None],
) -> None:
    seen: list[EngineOptions] = []

    def start(path: Path, options: EngineOptions, waits: object) -> Scripted:
        seen.append(options)
        return Scripted()

    monkeypatch.setattr(engine_module, "start_worker", start)
    put_in_catalogue(fake_model.pinned)
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    settings = LlamaCppSettings(cache_dir=str(tmp_path / "cache"), progress=False)
    for name in ("tiny", str(tmp_path / "x.gguf")):
        await make(name, settings).prepare()
    close_all()

    assert seen[0].template is not None
    assert "<|im_start|>" in seen[0].template
    assert seen[1].template is None


def test_what_is_available_says_how_to_fetch_it() -> None:
    listed = available()

    assert [each.name for each in listed] == ["llamacpp:qwen2.5-coder-1.5b", "llamacpp:qwen2.5-coder-0.5b"]
    assert [each.install for each in listed] == [f"locus models pull {each.name}" for each in listed]
    assert all("Apache-2.0" in each.licence for each in listed)


def test_the_manifest_provides_models_and_settings() -> None:
    assert plugin.name == "llamacpp"
    assert plugin.provides["model"] == "locus_plugin_llamacpp.model:make"
    assert plugin.settings == "locus_plugin_llamacpp.settings:LlamaCppSettings"


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_ctx": 0},
        {"threads": 0},
        {"slots": 0},
        {"max_tokens": 0},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LlamaCppSettings(**wrong)
