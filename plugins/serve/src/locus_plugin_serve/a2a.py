"""A2A 1.0 over JSON-RPC: the agent's card, and messages to it. A context is a thread, and a task is a run of it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from importlib.metadata import version
from typing import Any, Final
from uuid import UUID

from attrs import frozen
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from locus import AgentResult
from locus.core.errors import LocusError, NothingToResume
from locus.core.events import Ending
from locus.core.journal import Asked
from locus.core.state import AgentState
from locus.journal import JournalHost
from locus_plugin_serve.answer_text import TextWithdrawn, read_pieces, whole_text
from locus_plugin_serve.answering import await_result, stream_turn, take_on_disconnect, user_of
from locus_plugin_serve.answers import Answers
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.native import name_new_thread
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.sse import write_event
from locus_plugin_serve.turns import Turn, Turns
from locus_plugin_serve.users import ThreadName

__all__ = ["A2aApi"]

_TASK = re.compile(r"task_(?P<thread>.+)_(?P<run>[0-9a-f]{32})", re.ASCII)

#: Errors of JSON-RPC by the status that they would have in HTTP; those that ask a client to wait stay errors of HTTP.
_CODES: Final = {400: -32602, 404: -32001, 409: -32004, 500: -32603}
_NO_JSON: Final = -32700
_INVALID_REQUEST: Final = -32600
_UNKNOWN_METHOD: Final = -32601

_METHODS: Final = ("SendMessage", "SendStreamingMessage", "GetTask", "CancelTask")


@frozen
class _Task:
    """A run as a task."""

    thread: ThreadName
    run_id: str

    @classmethod
    def parse(cls, user: str, text: object) -> _Task:
        found = _TASK.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise Problem(404, f"task {text!r:.200} does not exist", code="unknown_task")
        return cls(ThreadName.of(user, found["thread"]), str(UUID(found["run"])))

    @property
    def ids(self) -> dict[str, str]:
        """Its names in an update."""
        return {"taskId": self.id, "contextId": self.thread.name}

    @property
    def id(self) -> str:
        return f"task_{self.thread.name}_{self.run_id.replace('-', '')}"

    def to_json(self, status: dict[str, Any], text: str = "") -> dict[str, Any]:
        form = {"id": self.id, "contextId": self.thread.name, "status": status}
        return {**form, "artifacts": [_artifact(text)]} if text else form

    def status(self, state: str, said: str = "") -> dict[str, Any]:
        form: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
        if said:
            message = {"messageId": f"{self.id}:status", "role": "ROLE_AGENT", "parts": [{"text": said}], **self.ids}
            form["message"] = message
        return form

    def describe(self, result: AgentResult[Any]) -> dict[str, Any]:
        """The task of a run whose segment has ended."""
        return self.describe_end(result.ending, result.interrupts, result.state, is_open=result.is_open)

    def describe_end(
        self, ending: Ending, questions: tuple[Asked, ...], state: AgentState, *, is_open: bool
    ) -> dict[str, Any]:
        """The same, from what a journal has."""
        if questions:
            status = self.status("INPUT_REQUIRED", "\n".join(each.question for each in questions))
        elif ending.is_cancelled:
            status = self.status("CANCELED", ending.reason)
        elif ending.is_failure:
            status = self.status("FAILED", ending.reason)
        elif is_open:  # the server leaves, or the run sleeps: another segment of it follows
            status = self.status("WORKING")
        else:
            status = self.status("COMPLETED")
        return self.to_json(status, whole_text(state))


def _artifact(text: str) -> dict[str, Any]:
    return {"artifactId": "answer", "parts": [{"text": text}]}


class A2aApi:
    """``/a2a`` and the agent's card.

    Args:
        turns: the turns of the agent.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns, self._answers = turns, Answers(turns)

    @property
    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/.well-known/agent-card.json", self.show_card, methods=["GET"]),
            Route("/a2a", self.call, methods=["POST"]),
        ]

    async def show_card(self, request: Request) -> Response:
        """What the agent is, for other agents."""
        name, settings = self._turns.agent.name or "", self._turns.settings
        base = settings.public_url or str(request.base_url)
        about = f"{name}, an agent"
        card: dict[str, Any] = {
            "name": name,
            "description": about,
            "version": self._turns.agent.version or version("locus-core"),
            "supportedInterfaces": [
                {"url": f"{base.rstrip('/')}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": name, "name": name, "description": about, "tags": ["agent"]}],
        }
        if settings.tokens:
            card["securitySchemes"] = {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
            card["securityRequirements"] = [{"schemes": {"bearer": {"list": []}}}]
        return JSONResponse(card)

    async def call(self, request: Request) -> ASGIApp:
        """Answer a call of JSON-RPC."""
        try:
            body = await Body.read(request)
        except Problem as e:
            if e.status != 400:
                raise
            return _error(None, _INVALID_REQUEST if _is_json(await request.body()) else _NO_JSON, e.text)
        number = body.take_any("id")
        try:
            method = body.take("method", str, "")
        except Problem as e:
            return _error(number, _INVALID_REQUEST, e.text)
        if method not in _METHODS:
            return _error(number, _UNKNOWN_METHOD, f"method {method!r:.80} is not supported")
        try:
            return await self._call(request, number, method, Body(body.take("params", dict, {})))
        except (Problem, LocusError) as e:
            problem = as_problem(e)
            if problem.status not in _CODES:
                raise problem from e
            return _error(number, _CODES[problem.status], problem.text)

    async def _call(self, request: Request, number: Any, method: str, params: Body) -> ASGIApp:
        if method in ("SendMessage", "SendStreamingMessage"):
            return await self._send(request, params, number, streams=method == "SendStreamingMessage")
        task = _Task.parse(user_of(request), params.take_any("id"))
        return _result(number, await (self._find(task) if method == "GetTask" else self._cancel(task)))

    async def _send(self, request: Request, params: Body, number: Any, *, streams: bool) -> ASGIApp:
        message = Body(params.take("message", dict, {}))
        options = Body(params.take("configuration", dict, {}))
        user, text = user_of(request), _read_text(message.take("parts", list, []))
        message_id, task_id = message.take("messageId", str, ""), message.take("taskId", str, "")
        begin: Callable[[], Awaitable[Turn]]
        if task_id:
            task = _Task.parse(user, task_id)
            thread = task.thread
            begin = lambda: self._answer(task, text, message_id)  # noqa: E731
        else:
            thread = ThreadName.of(user, message.take("contextId", str, "") or name_new_thread("a2a", message_id))
            begin = lambda: self._turns.begin(thread, text, request_id=message_id)  # noqa: E731
        cancels = take_on_disconnect(options, self._turns.settings.on_disconnect)
        if streams:

            def write(turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
                return _write_updates(number, turn, feed)

            return await stream_turn(self._turns, thread, begin, write, cancels=cancels)
        turn = await begin()
        task = _Task(thread, turn.run_id)
        if options.take("returnImmediately", bool, False):  # noqa: FBT003  a keyword of the protocol
            return _result(number, {"task": task.to_json(task.status("WORKING"))})
        try:
            form = task.describe(await await_result(request, turn, cancels=cancels))
        except NothingToResume:
            if not _is_left_open(turn):
                raise
            form = task.to_json(task.status("WORKING"))
        return _result(number, {"task": form})

    async def _answer(self, task: _Task, text: str, message_id: str) -> Turn:
        """Go on with a task that waits for a message.

        Raises:
            Problem: it does not exist, or it is over.
            LocusError: it cannot go on, or the text does not answer its question.
        """
        try:
            return await self._answers.give(task.thread, text, request_id=message_id, run_id=task.run_id)
        except NothingToResume:
            over = f"task {task.id!r} is in a terminal state; a message without a task id begins another one"
            raise Problem(409, over, code="task_is_over") from None

    async def _find(self, task: _Task) -> dict[str, Any]:
        host = await JournalHost.peek(self._turns.store, task.thread.thread_id)
        if host is None or host.run_id != task.run_id:
            raise Problem(404, f"task {task.id!r} does not exist, or its context has gone on", code="unknown_task")
        questions = tuple(host.open_questions.values())
        if self._turns.find(task.thread) is not None or (host.open_node is not None and not questions):
            return task.to_json(task.status("WORKING"))
        last = host.last
        ending = Ending("") if last is None else Ending(last.why, last.satisfied)
        return task.describe_end(ending, questions, host.state, is_open=False)

    async def _cancel(self, task: _Task) -> dict[str, Any]:
        turn = self._turns.find(task.thread)
        if turn is None or turn.run_id != task.run_id:
            raise Problem(409, f"no run of task {task.id!r} is under way", code="not_running")
        turn.cancel("")
        return task.describe(await turn.wait())


def _read_text(parts: list[Any]) -> str:
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise Problem.of_input("message.parts must be parts with text", param="message.parts")
    return "\n".join(map(str, texts))


def _is_left_open(turn: Turn) -> bool:
    """Whether the server has left before the run came to a safe point: the next one goes on with it."""
    return turn.finished.is_set() and turn.result is None and turn.error is None


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _result(number: Any, result: dict[str, Any]) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})


def _error(number: Any, code: int, text: str) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}})


async def _write_updates(number: Any, turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
    task = _Task(turn.thread, turn.run_id)

    def update(kind: str, form: dict[str, Any]) -> bytes:
        return write_event({"jsonrpc": "2.0", "id": number, "result": {kind: form}})

    yield update("task", task.to_json(task.status("WORKING")))
    appends = False
    try:
        async for pieces in read_pieces(turn, feed):
            artifact = _artifact("".join(pieces))
            yield update("artifactUpdate", {**task.ids, "artifact": artifact, "append": appends, "lastChunk": False})
            appends = True
        status = task.describe(await turn.wait())["status"]
    except (LocusError, Problem, TextWithdrawn) as e:
        if _is_left_open(turn):
            status = task.status("WORKING")
        else:
            status = task.status("FAILED", str(e) if isinstance(e, TextWithdrawn) else as_problem(e).text)
    yield update("statusUpdate", {**task.ids, "status": status})
