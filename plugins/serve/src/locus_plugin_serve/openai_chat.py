"""OpenAI's chat completions and list of models: a request is a turn on a thread of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import time
from typing import Any, Final

from attrs import frozen
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from locus import AgentResult
from locus.core.errors import LocusError
from locus_plugin_serve.answer_text import TextWithdrawn, read_pieces, whole_text
from locus_plugin_serve.answering import await_result, read_request_id, stream_turn, take_on_disconnect, user_of
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.native import name_new_thread
from locus_plugin_serve.openai_input import check_model, read_messages, read_settings, refuse_unheeded
from locus_plugin_serve.openai_outcome import check_ended, describe_run, finish_reason
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.sse import PieceWriter, write_event
from locus_plugin_serve.turns import Turn, Turns
from locus_plugin_serve.users import ThreadName

__all__ = ["ChatApi"]

#: Fields of a chat completion that the agent cannot heed, by why.
_UNHEEDED: Final = {
    "the agent has its own tools": (
        "tools",
        "functions",
        "tool_choice",
        "function_call",
        "parallel_tool_calls",
        "web_search_options",
    ),
    "the agent decides about it": (
        "stop",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "reasoning_effort",
        "verbosity",
        "modalities",
        "audio",
        "prediction",
        "moderation",
        "service_tier",
    ),
}


@frozen
class _Head:
    """What every object of an answer repeats."""

    id: str
    created: int
    model: str

    def to_json(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        head = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return {**head, "choices": choices, **more}

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return self.to_json("chat.completion.chunk", [choice], **more)


class ChatApi:
    """``/v1/chat/completions`` and ``/v1/models``.

    Args:
        turns: the turns of the agent.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns, self._name, self._since = turns, turns.agent.name or "", int(time())

    @property
    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
            Route("/v1/models", self.list_models, methods=["GET"]),
            Route("/v1/models/{model}", self.show_model, methods=["GET"]),
        ]

    async def list_models(self, request: Request) -> Response:
        """The agent, as a list of one model."""
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def show_model(self, request: Request) -> Response:
        """The agent, as a model."""
        if request.path_params["model"] != self._name:
            raise Problem(404, f"this server has the model {self._name!r} alone", code="model_not_found")
        return JSONResponse(self._model())

    def _model(self) -> dict[str, Any]:
        return {"id": self._name, "object": "model", "created": self._since, "owned_by": "locus"}

    async def complete(self, request: Request) -> ASGIApp:
        """Take a turn."""
        body = await Body.read(request)
        check_model(body, self._name)
        _check_form(body)
        messages = read_messages(body.take("messages", list, []), "messages")
        options = read_settings(body, "max_tokens", "max_completion_tokens")
        request_id = read_request_id(request, body)
        # A client that cannot name the turn cannot come again for its answer.
        cancels = take_on_disconnect(body, self._turns.settings.on_disconnect if request_id else "cancel")
        streams = body.take("stream", bool, False)  # noqa: FBT003  a keyword of another API
        has_usage = bool(body.take("stream_options", dict, {}).get("include_usage"))
        refuse_unheeded(body, _UNHEEDED)
        thread = ThreadName.of(user_of(request), name_new_thread("chat", request_id))
        head = _Head(f"chatcmpl-{thread.name.removeprefix('chat-')}", int(time()), self._name)

        async def begin() -> Turn:
            return await self._turns.begin(thread, messages, request_id=request_id, **options)

        if streams:

            def write(turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
                return _write_chunks(head, turn, feed, has_usage=has_usage)

            return await stream_turn(self._turns, thread, begin, write, cancels=cancels)
        result = await await_result(request, await begin(), cancels=cancels)
        check_ended(result)
        message = {"role": "assistant", "content": whole_text(result.state), "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(result), "logprobs": None}
        more = {"usage": _usage(result), "locus": describe_run(thread, result)}
        return JSONResponse(head.to_json("chat.completion", [choice], **more))


def _check_form(body: Body) -> None:
    """Insist on one answer, which is text."""
    if body.take("n", int, 1) != 1:
        raise Problem.of_input("n must be 1: an agent takes a turn once", param="n")
    if body.take("response_format", dict, {"type": "text"}).get("type") != "text":
        raise Problem.of_input("response_format must be text: the agent has its own output", param="response_format")


async def _write_chunks(head: _Head, turn: Turn, feed: Feed, *, has_usage: bool) -> AsyncGenerator[bytes, None]:
    yield write_event(head.chunk({"role": "assistant", "content": ""}))
    writer = PieceWriter(head.chunk({"content": PieceWriter.HOLE}))
    try:
        async for pieces in read_pieces(turn, feed):
            yield b"".join(map(writer.write, pieces))
        result = await turn.wait()
        check_ended(result)
    except (LocusError, Problem) as e:
        yield write_event(as_problem(e).to_json())
        return
    except TextWithdrawn as e:
        yield write_event(Problem(500, str(e), kind="server_error", code="answer_withdrawn").to_json())
        return
    last = write_event(head.chunk({}, finish_reason(result), locus=describe_run(turn.thread, result)))
    if has_usage:
        last += write_event(head.to_json("chat.completion.chunk", [], usage=_usage(result)))
    yield last + write_event("[DONE]")


def _usage(result: AgentResult[Any]) -> dict[str, Any]:
    used = result.usage
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": used.prompt_tokens + used.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
    }
