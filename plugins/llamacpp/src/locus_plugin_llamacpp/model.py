"""`LlamaCppModel`: the kernel's Model protocol over an embedded engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import anyio
from attrs import frozen

from locus.core.messages import Block, Message, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models import Chunk, ModelRequest, ModelResponse, OnChunk, Price, StopReason
from locus_kit.origins import Origin
from locus_kit.pinned import Progress, show_progress, silent
from locus_plugin_llamacpp.catalogue import CATALOGUE
from locus_plugin_llamacpp.engine import Engine, shared_engine
from locus_plugin_llamacpp.errors import DeadlinePassed
from locus_plugin_llamacpp.history import EXTRAS
from locus_plugin_llamacpp.progress import Waiting, show_waiting, wait_silently
from locus_plugin_llamacpp.runtime import EngineOptions
from locus_plugin_llamacpp.settings import LlamaCppSettings
from locus_plugin_llamacpp.turns import Reply, Turn, is_repeat, plan, read, without
from locus_plugin_llamacpp.weights import Source, check, find, is_here, parse

__all__ = ["Available", "LlamaCppModel", "available", "make"]


@frozen(kw_only=True)
class Available:
    """A model that can be asked for by name, for lists.

    Args:
        name: with the scheme.
        installed: whether its weights are on this machine.
        size: bytes of its weights.
        summary: one line.
        install: the command that fetches its weights before they are needed.
        licence: under which terms it comes.
    """

    name: str
    installed: bool
    size: int
    summary: str
    install: str
    licence: str


def available(cache_dir: str | None = None) -> tuple[Available, ...]:
    """The packaged models, the default one first.

    Args:
        cache_dir: the setting: where to look for their weights.
    """
    return tuple(
        Available(
            name=f"llamacpp:{model.name}",
            installed=is_here(model, cache_dir=cache_dir),
            size=model.file.size,
            summary=model.summary,
            install=model.pull,
            licence=model.licence,
        )
        for model in CATALOGUE.values()
    )


def make(name: str, settings: LlamaCppSettings | None = None) -> LlamaCppModel:
    """The model behind ``llamacpp:NAME``; nothing is loaded before the first request.

    Args:
        name: a packaged model, a path to a GGUF file, or ``hf:OWNER/REPO:FILE``.
        settings: None = the defaults.

    Raises:
        UnknownName: it is not one of the three.
    """
    return LlamaCppModel(parse(name), settings or LlamaCppSettings())


class LlamaCppModel:
    """A GGUF model in this process. Models of the same file and settings share one engine.

    Args:
        source: where the weights come from.
        settings: how to load and to ask it.
    """

    #: It runs on the user's own machine.
    price = Price(prompt=0.0, completion=0.0)

    def __init__(self, source: Source, settings: LlamaCppSettings) -> None:
        self._source, self._settings = source, settings
        self._origin = Origin.of("llamacpp", "", source.name)

    @property
    def name(self) -> str:
        """``"llamacpp:"`` and what was asked for."""
        return f"llamacpp:{self._source.name}"

    @property
    def context_window(self) -> int:
        """Tokens of the context window."""
        return self._settings.n_ctx

    @property
    def engine(self) -> Engine:
        """The engine of this file and these settings, shared by the whole process."""
        source, cache_dir = self._source, self._settings.cache_dir
        return shared_engine(
            (source, cache_dir),
            self.name,
            lambda progress: find(source, cache_dir=cache_dir, progress=progress),
            self._options(),
        )

    def check_ready(self) -> None:
        """Check before the first request that the weights are available. Nothing is fetched or loaded.

        Raises:
            WeightsMissing: the file was not found, or it would have to be fetched and this Python has no pip.
            WeightsError: the file cannot be read, or is not a GGUF file.
        """
        check(self._source, cache_dir=self._settings.cache_dir)

    async def prepare(self, progress: Progress | None = None) -> None:
        """Load the model now rather than with the first request.

        Args:
            progress: called in a worker thread with (bytes done, total) while weights are fetched; None =
                as the settings say.

        Raises:
            ModelError: the weights or the engine failed.
        """
        await self.engine.prepare(progress or self._progress(), self._waiting())

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request; see `locus.models.Model.complete`.

        Raises:
            PromptTooLong: the prompt exceeds the window.
            DeadlinePassed: the request's deadline came first.
            ModelError: see `locus_plugin_llamacpp.errors`.
        """
        request, notes = self._origin.read(request)
        if request.deadline is None:
            return self._origin.sign(await self._complete(request, on_chunk), notes)
        with anyio.CancelScope(deadline=request.deadline):
            return self._origin.sign(await self._complete(request, on_chunk), notes)
        raise DeadlinePassed(self.name)

    async def _complete(self, request: ModelRequest, on_chunk: OnChunk | None) -> ModelResponse:
        turn, usage, thought = plan(request, id_guard=self._settings.id_guard), Usage(), ""
        while True:
            said, finish, spent = await self._ask(request, turn, on_chunk)
            usage += spent
            text, thought = said["content"], thought + said.get("reasoning_content", "")
            reply = read(turn, text)
            if reply.call is None or not (self._settings.repeat_guard and is_repeat(turn, reply)):
                break
            turn = without(turn, reply.call)
        if on_chunk is not None and reply.call is not None:
            await on_chunk(Chunk(_arguments(reply.call), "tool_call"))
        return ModelResponse(
            message=_message(turn, reply, text, thought),
            usage=usage,
            stop_reason=_stop_reason(reply, finish),
            model=self.name,
        )

    async def _ask(
        self, request: ModelRequest, turn: Turn, on_chunk: OnChunk | None
    ) -> tuple[dict[str, Any], str, Usage]:
        stream = turn.stream()

        async def forward(chunk: dict[str, Any]) -> None:
            assert on_chunk is not None
            deltas = [choice.get("delta") or {} for choice in chunk["choices"]]
            if thought := "".join(delta.get("reasoning_content") or "" for delta in deltas):
                await on_chunk(Chunk(thought, "reasoning"))
            piece = "".join(delta.get("content") or "" for delta in deltas)
            if text := piece if stream is None else stream.feed(piece):
                await on_chunk(Chunk(text))

        done = await self.engine.chat(
            self._body(request, turn),
            None if on_chunk is None else forward,
            progress=self._progress(),
            waiting=self._waiting(),
        )
        choice = done["choices"][0]
        return choice["message"], choice["finish_reason"], _usage(done)

    def _body(self, request: ModelRequest, turn: Turn) -> dict[str, Any]:
        settings, own = request.settings, self._settings
        body: dict[str, Any] = {
            **settings.extras,
            "messages": list(turn.messages),
            "temperature": own.temperature if settings.temperature is None else settings.temperature,
            "max_tokens": settings.max_tokens or own.max_tokens,
        }
        seed = own.seed if settings.seed is None else settings.seed
        if seed is not None:
            body["seed"] = seed
        if settings.stop:
            wrapped = turn.final is not None
            body["stop"] = [json.dumps(text, ensure_ascii=False)[1:-1] if wrapped else text for text in settings.stop]
        schema = turn.schema
        if schema is not None:
            body["json_schema"] = schema
        return body

    def _options(self) -> EngineOptions:
        own = self._settings
        # The packaged models speak ChatML; what any other file speaks, its own template knows.
        template = _chatml() if self._source.packaged is not None else None
        return EngineOptions(n_ctx=own.n_ctx, threads=own.threads, slots=own.slots, template=template)

    def _progress(self) -> Progress:
        return show_progress(self.name) if self._settings.progress else silent

    def _waiting(self) -> Waiting:
        return show_waiting(self.name) if self._settings.progress else wait_silently


def _chatml() -> str:
    return resources.files("locus_plugin_llamacpp").joinpath("templates", "chatml.jinja").read_text("utf-8")


def _message(turn: Turn, reply: Reply, text: str, thought: str) -> Message:
    # What was written goes back as it was written, token for token; a text that was cut would not parse.
    extras = {EXTRAS: text} if turn.final is not None and reply.complete else {}
    # Thoughts are shown and kept, and not sent back: `history` writes texts and calls.
    content: list[Block] = [ThinkingBlock(thought)] if thought else []
    if reply.call is not None:
        content.append(reply.call)
    elif reply.answer:
        content.append(TextBlock(reply.answer))
    return Message(Role.ASSISTANT, tuple(content), extras=extras)


def _arguments(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False) if call.malformed is None else call.malformed


def _stop_reason(reply: Reply, finish: str) -> StopReason:
    if finish == "length":
        return "length"
    return "stop" if reply.call is None else "tool_calls"


def _usage(done: Mapping[str, Any]) -> Usage:
    usage = done["usage"]
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("prompt_tokens", 0),
        completion_tokens=usage.get("completion_tokens", 0),
        cached_tokens=details.get("cached_tokens", 0),
    )
