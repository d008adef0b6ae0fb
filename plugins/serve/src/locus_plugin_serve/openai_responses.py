"""OpenAI's responses: a response is a turn, and ``previous_response_id`` goes on with its thread."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from itertools import count
from time import time
from typing import Any, Final
from uuid import UUID

from attrs import frozen
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from locus import AgentResult
from locus.core.errors import LocusError
from locus.journal import JournalHost
from locus_plugin_serve.answer_text import TextWithdrawn, read_pieces, whole_text
from locus_plugin_serve.answering import await_result, read_request_id, stream_turn, take_on_disconnect, user_of
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.native import name_new_thread
from locus_plugin_serve.openai_input import check_model, read_messages, read_settings, refuse_unheeded
from locus_plugin_serve.openai_outcome import check_ended, describe_run, finish_reason
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.sse import write_event
from locus_plugin_serve.turns import Turn, Turns, unknown_thread
from locus_plugin_serve.users import ThreadName

__all__ = ["ResponsesApi"]

#: Fields of a response that the agent cannot heed, by why.
_UNHEEDED: Final = {
    "the agent has its own": (
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tool_calls",
        "prompt",
        "reasoning",
        "context_management",
    ),
    "the agent decides about it": ("top_p", "top_logprobs", "truncation", "moderation", "service_tier", "image"),
    "use the server's own API under /api for that": ("background", "background_options", "conversation", "include"),
}

_ID = re.compile(r"resp_(?P<thread>.+)_(?P<run>[0-9a-f]{32})", re.ASCII)


def _response_id(thread: ThreadName, run_id: str) -> str:
    return f"resp_{thread.name}_{run_id.replace('-', '')}"


@frozen
class _Writer:
    """Makes the objects of one response."""

    thread: ThreadName
    run_id: str
    model: str
    created: int
    previous: str | None

    def response(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": _response_id(self.thread, self.run_id),
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "previous_response_id": self.previous,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": None,
            "top_p": None,
            **more,
        }

    def describe_end(self, result: AgentResult[Any]) -> dict[str, Any]:
        why = finish_reason(result)
        details = (
            None if why == "stop" else {"reason": "content_filter" if why == "content_filter" else "max_output_tokens"}
        )
        used = result.usage
        usage = {
            "input_tokens": used.prompt_tokens,
            "input_tokens_details": {"cached_tokens": used.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": used.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.prompt_tokens + used.completion_tokens,
        }
        return self.response(
            "completed" if details is None else "incomplete",
            output=[self.item("completed", whole_text(result.state))],
            incomplete_details=details,
            usage=usage,
            locus=describe_run(self.thread, result),
        )

    @property
    def item_id(self) -> str:
        return f"msg_{self.run_id.replace('-', '')}"

    def item(self, status: str, text: str | None = None) -> dict[str, Any]:
        content = [] if text is None else [part(text)]
        return {"id": self.item_id, "type": "message", "role": "assistant", "status": status, "content": content}


def part(text: str) -> dict[str, Any]:
    """A text of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class ResponsesApi:
    """``/v1/responses``.

    Args:
        turns: the turns of the agent.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns, self._name = turns, turns.agent.name or ""

    @property
    def routes(self) -> list[Route]:
        """Where it is."""
        return [Route("/v1/responses", self.create, methods=["POST"])]

    async def create(self, request: Request) -> ASGIApp:
        """Take a turn."""
        body = await Body.read(request)
        check_model(body, self._name)
        _check_text(body)
        given = body.take_any("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else body.take("input", list, [])
        instructions = body.take("instructions", str, "")
        if instructions:
            items = [{"role": "developer", "content": instructions}, *items]
        messages = read_messages(items, "input")
        options = read_settings(body, "max_output_tokens")
        request_id = read_request_id(request, body)
        streams = body.take("stream", bool, False)  # noqa: FBT003  a keyword of another API
        previous = body.take("previous_response_id", str, "")
        cancels = take_on_disconnect(body, self._turns.settings.on_disconnect if request_id else "cancel")
        refuse_unheeded(body, _UNHEEDED)
        thread = await self._find_thread(user_of(request), previous, request_id)

        async def begin() -> Turn:
            return await self._turns.begin(thread, messages, request_id=request_id, **options)

        def writer(turn: Turn) -> _Writer:
            return _Writer(thread, turn.run_id, self._name, int(time()), previous or None)

        if streams:

            def write(turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
                return _write_events(writer(turn), turn, feed)

            return await stream_turn(self._turns, thread, begin, write, cancels=cancels)
        turn = await begin()
        result = await await_result(request, turn, cancels=cancels)
        check_ended(result)
        return JSONResponse(writer(turn).describe_end(result))

    async def _find_thread(self, user: str, previous: str, request_id: str) -> ThreadName:
        if not previous:
            return ThreadName.of(user, name_new_thread("resp", request_id))
        found = _ID.fullmatch(previous)
        if found is None:
            raise Problem.of_input(f"no response has the id {previous!r:.200}", param="previous_response_id")
        thread = ThreadName.of(user, found["thread"])
        host = await JournalHost.peek(self._turns.store, thread.thread_id)
        if host is None:
            raise unknown_thread(thread)
        is_repeated = bool(request_id) and host.state.metadata.get("serve.request") == request_id
        if host.run_id != str(UUID(found["run"])) and not is_repeated:
            raise Problem(
                409,
                f"response {previous!r} is not the newest one of its conversation, and these do not branch here",
                code="response_superseded",
                param="previous_response_id",
            )
        return thread


def _check_text(body: Body) -> None:
    """Insist on an answer that is plain text, as long as the agent makes it."""
    text = body.take("text", dict, {})
    ordinary = {"format": {"type": "text"}, "verbosity": "medium"}
    for name, value in text.items():
        if value is not None and value != ordinary.get(name):
            at = f"text.{name}"[:80]
            raise Problem.of_input(
                f"{at} is not supported: the agent has its own output", param=at, code="unsupported_parameter"
            )


async def _write_events(writer: _Writer, turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
    numbers: Iterator[int] = count()

    def event(kind: str, **fields: Any) -> bytes:
        return write_event({"type": kind, "sequence_number": next(numbers), **fields}, name=kind)

    place = {"output_index": 0, "item_id": writer.item_id, "content_index": 0}
    yield event("response.created", response=writer.response("in_progress"))
    yield event("response.in_progress", response=writer.response("in_progress"))
    yield event("response.output_item.added", output_index=0, item=writer.item("in_progress"))
    yield event("response.content_part.added", **place, part=part(""))
    try:
        text = ""
        async for pieces in read_pieces(turn, feed):
            text += "".join(pieces)
            yield b"".join(event("response.output_text.delta", **place, delta=piece, logprobs=[]) for piece in pieces)
        result = await turn.wait()
        check_ended(result)
    except (LocusError, Problem, TextWithdrawn) as e:
        problem = Problem(500, str(e)) if isinstance(e, TextWithdrawn) else as_problem(e)
        error = {"code": "server_error", "message": problem.text}
        yield event("response.failed", response=writer.response("failed", error=error))
        return
    yield event("response.output_text.done", **place, text=text, logprobs=[])
    yield event("response.content_part.done", **place, part=part(text))
    yield event("response.output_item.done", output_index=0, item=writer.item("completed", text))
    ended = writer.describe_end(result)
    yield event(f"response.{ended['status']}", response=ended)
