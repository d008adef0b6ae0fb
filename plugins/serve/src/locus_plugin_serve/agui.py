"""AG-UI: a run as the events that user interfaces of that protocol read.

A thread is the client's thread, and its run id is the request id of a turn. The server keeps the conversation, so of
the messages that a client sends again each time, only what the user has said since the last answer is the turn.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from locus import AgentResult
from locus.core import encode_data
from locus.core.errors import LocusError
from locus.core.events import Event, ThinkEvent, ToolCacheHitEvent, ToolCompleteEvent
from locus_plugin_serve.answer_text import TextPieces, TextWithdrawn, whole_text
from locus_plugin_serve.answering import stream_turn, take_on_disconnect, user_of
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.openai_input import read_messages, refuse_fields
from locus_plugin_serve.openai_outcome import check_ended
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.sse import write_comment, write_event
from locus_plugin_serve.turns import Turn, Turns
from locus_plugin_serve.users import ThreadName

__all__ = ["AgUiApi"]


class AgUiApi:
    """``/agui``.

    Args:
        turns: the turns of the agent.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    @property
    def routes(self) -> list[Route]:
        """Where it is."""
        return [Route("/agui", self.run, methods=["POST"])]

    async def run(self, request: Request) -> ASGIApp:
        """Take a turn, or answer the questions that an earlier one has asked."""
        body = await Body.read(request)
        thread = ThreadName.of(user_of(request), body.take_any("threadId"))
        run_id = ThreadName.of(user_of(request), body.take_any("runId")).name  # the same letters are good for both
        refuse_fields(body, ("tools", "context", "state"), "the agent has its own")
        cancels = take_on_disconnect(body, self._turns.settings.on_disconnect)
        # Who answers has read what came before the question, as a run of its own.
        is_answer = bool(body.take("resume", list, []))
        begin = self._prepare(body, thread, run_id)

        def write(turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
            writer = _Writer(run_id, turn.thread, TextPieces(turn, feed, between=""))
            return _write_events(writer, turn, feed, self._turns.settings.ping, catches_up=not is_answer)

        return await stream_turn(self._turns, thread, begin, write, cancels=cancels)

    def _prepare(self, body: Body, thread: ThreadName, run_id: str) -> Callable[[], Awaitable[Turn]]:
        answers = {}
        for number, entry in enumerate(body.take("resume", list, [])):
            if not isinstance(entry, dict) or entry.get("status") != "resolved" or entry.get("payload") is None:
                at = f"resume[{number}]"
                raise Problem.of_input(f"{at} must have the status resolved, and a payload", param=at)
            answers[str(entry.get("interruptId"))] = entry["payload"]
        if answers:
            return lambda: self._turns.resume(thread, answers)
        items = body.take("messages", list, [])
        begins = len(items)
        while begins and isinstance(items[begins - 1], dict) and items[begins - 1].get("role") == "user":
            begins -= 1
        messages = read_messages(items[begins:], "messages")
        return lambda: self._turns.begin(thread, messages, request_id=run_id)


class _Writer:
    """Makes the events of one run."""

    def __init__(self, run_id: str, thread: ThreadName, pieces: TextPieces) -> None:
        self._run = {"threadId": thread.name, "runId": run_id}
        self._run_id, self._messages, self._is_open = run_id, 0, False
        self._pieces = pieces

    def begin(self, *, catches_up: bool) -> Iterable[bytes]:
        yield _event("RUN_STARTED", **self._run)
        if catches_up:
            yield from self._say(self._pieces.missed)
            yield from self._close()

    def hear(self, event: Event) -> Iterable[bytes]:
        yield from self._say(self._pieces.hear(event))
        if event.parent_run_id is not None or event.replayed:
            return
        if isinstance(event, ThinkEvent):
            yield from self._close()
            for call in event.tool_calls:
                known = {"toolCallId": self._call_id(event, call.id)}
                yield _event("TOOL_CALL_START", **known, toolCallName=call.name)
                arguments = json.dumps(encode_data(call.arguments)) if call.malformed is None else call.malformed
                if arguments:
                    yield _event("TOOL_CALL_ARGS", **known, delta=arguments)
                yield _event("TOOL_CALL_END", **known)
        elif isinstance(event, ToolCompleteEvent | ToolCacheHitEvent):
            call_id = self._call_id(event, event.call_id)
            content = event.error or event.result or ""
            yield _event("TOOL_CALL_RESULT", messageId=f"{call_id}:result", toolCallId=call_id, content=content)

    def end(self, result: AgentResult[Any]) -> Iterable[bytes]:
        check_ended(result)
        yield from self._say(self._pieces.end(whole_text(result.state, between="")))
        yield from self._close()
        outcome: dict[str, Any] = {"type": "success"}
        if result.interrupts:
            asked = [
                {
                    "id": each.interrupt_id,
                    "reason": "question",
                    "message": each.question,
                    "metadata": {"options": [str(option) for option in each.options]},
                }
                for each in result.interrupts
            ]
            outcome = {"type": "interrupt", "interrupts": asked}
        elif result.ending.is_cancelled:
            outcome = {"type": "cancelled"}
        yield _event("RUN_FINISHED", **self._run, outcome=outcome, result={"stopReason": result.stop_reason})

    def fail(self, problem: Problem) -> Iterable[bytes]:
        yield from self._close()
        yield _event("RUN_ERROR", message=problem.text, code=problem.code or problem.kind)

    def _say(self, piece: str) -> Iterable[bytes]:
        if not piece:
            return
        if not self._is_open:
            self._is_open, self._messages = True, self._messages + 1
            yield _event("TEXT_MESSAGE_START", messageId=self._message_id, role="assistant")
        yield _event("TEXT_MESSAGE_CONTENT", messageId=self._message_id, delta=piece)

    def _close(self) -> Iterable[bytes]:
        if self._is_open:
            self._is_open = False
            yield _event("TEXT_MESSAGE_END", messageId=self._message_id)

    @property
    def _message_id(self) -> str:
        return f"{self._run_id}:message:{self._messages}"

    def _call_id(self, event: Event, call_id: str) -> str:
        # Local models use the ids of calls again; those of this protocol are unique.
        return f"{self._run_id}:{event.iteration}:{call_id}"


def _event(kind: str, **fields: Any) -> bytes:
    return write_event({"type": kind, **fields})


async def _write_events(
    writer: _Writer, turn: Turn, feed: Feed, ping: float, *, catches_up: bool
) -> AsyncGenerator[bytes, None]:
    yield b"".join(writer.begin(catches_up=catches_up))
    try:
        while True:
            was_over = turn.finished.is_set() or feed.is_closed
            heard = b"".join(frame for event in feed.take() for frame in writer.hear(event))
            if heard:
                yield heard
            if was_over:
                break
            if not await feed.wait(ping):
                yield write_comment("ping")
        yield b"".join(writer.end(await turn.wait()))
    except (LocusError, Problem) as e:
        yield b"".join(writer.fail(as_problem(e)))
    except TextWithdrawn as e:
        yield b"".join(writer.fail(Problem(500, str(e), kind="server_error", code="answer_withdrawn")))
