"""The server's own API: turns on threads, their events, questions and their answers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from locus.core.errors import JournalError, NothingToResume, StoreError, ThreadBusy
from locus.journal import JournalHost, QueueStore, ThreadQuery
from locus_plugin_serve.accounts import USER_ENTRY
from locus_plugin_serve.answering import await_result, read_request_id, stream_turn, take_on_disconnect, user_of
from locus_plugin_serve.answers import Answers
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.following import Place, follow_thread, is_at_end
from locus_plugin_serve.gate import is_loopback_name
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.results import info_to_json, result_to_json, thread_to_json
from locus_plugin_serve.sse import EventStream
from locus_plugin_serve.turns import Turn, Turns, unknown_thread
from locus_plugin_serve.users import COOKIE_SECONDS, ThreadName, Users

__all__ = ["NativeApi", "name_new_thread"]

#: How many threads a list has, unless fewer are asked for.
_PAGE = 100

#: How many digits that number may be written with.
_DIGITS = 18


def name_new_thread(prefix: str, request_id: str) -> str:
    """The name of a thread that its client does not name: of a repeated request the same one.

    Args:
        prefix: how it begins.
        request_id: the client's name for the turn, or ``""``.
    """
    made = hashlib.sha256(request_id.encode()).hexdigest()[:32] if request_id else uuid4().hex
    return f"{prefix}-{made}"


class NativeApi:
    """The routes under ``/api``.

    Args:
        turns: the turns of the agent.
        users: make the cookies that pages read events with.
    """

    def __init__(self, turns: Turns, users: Users) -> None:
        self._turns, self._users, self._settings = turns, users, turns.settings
        self._answers = Answers(turns)

    @property
    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/api/turns", self.begin, methods=["POST"]),
            Route("/api/cookie", self.make_cookie, methods=["POST"]),
            Route("/api/threads", self.list_threads, methods=["GET"]),
            Route("/api/threads/{thread}", self.show, methods=["GET"]),
            Route("/api/threads/{thread}/turns", self.begin, methods=["POST"]),
            Route("/api/threads/{thread}/events", self.events, methods=["GET"]),
            Route("/api/threads/{thread}/answers", self.answer, methods=["POST"]),
            Route("/api/threads/{thread}/resume", self.resume, methods=["POST"]),
            Route("/api/threads/{thread}/cancel", self.cancel, methods=["POST"]),
        ]

    # -- turns ------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> ASGIApp:
        """Take a turn of a thread, or of a new one."""
        body = await Body.read(request)
        request_id = read_request_id(request, body)
        named = request.path_params.get("thread") or name_new_thread("turn", request_id)
        thread = ThreadName.of(user_of(request), named)
        prompt = body.take("prompt", str, "")
        # Who does not wait comes to watch.
        comes = not body.take("wait", bool, True)  # noqa: FBT003
        return await self._answer(
            request, body, thread, lambda: self._turns.begin(thread, prompt, request_id=request_id, is_watched=comes)
        )

    async def answer(self, request: Request) -> ASGIApp:
        """Answer the questions of a run, which goes on then."""
        body = await Body.read(request)
        thread = self._thread(request)
        answer = body.take_any("answers") if body.has("answers") else body.take_any("answer")
        if answer is None:
            raise Problem.of_input("expected the field answer, or answers with an answer by the id of each question")
        request_id = read_request_id(request, body)
        return await self._answer(
            request, body, thread, lambda: self._answers.give(thread, answer, request_id=request_id)
        )

    async def resume(self, request: Request) -> ASGIApp:
        """Go on with a run that an error has left open."""
        body = await Body.read(request)
        read_request_id(request, body)  # a repeat finds the run under way, or nothing that is open
        thread = self._thread(request)
        return await self._answer(request, body, thread, lambda: self._turns.resume(thread))

    async def _answer(
        self, request: Request, body: Body, thread: ThreadName, begin: Callable[[], Awaitable[Turn]]
    ) -> ASGIApp:
        streams, waits = body.take("stream", bool, False), body.take("wait", bool, True)  # noqa: FBT003
        cancels = take_on_disconnect(body, self._settings.on_disconnect)
        body.refuse_rest()
        if streams:
            return await stream_turn(self._turns, thread, begin, self._write, cancels=cancels, tells_text=False)
        turn = await begin()
        if waits:
            return JSONResponse(result_to_json(thread, await await_result(request, turn, cancels=cancels)))
        place = str(Place.behind(turn.after))
        return JSONResponse({"thread": thread.name, "run_id": turn.run_id, "last_event_id": place}, 202)

    def _write(self, turn: Turn, feed: Feed) -> AsyncGenerator[bytes, None]:
        place = Place.behind(turn.after) if turn.after else Place()
        return self._follow(turn.thread, feed, after=place, run_id=turn.run_id)

    def _follow(self, thread: ThreadName, feed: Feed, **options: Any) -> AsyncGenerator[bytes, None]:
        return follow_thread(
            self._turns.store,
            thread,
            feed,
            is_here=lambda: self._turns.find(thread) is not None,
            ping=self._settings.ping,
            **options,
        )

    async def cancel(self, request: Request) -> Response:
        """End the run of a thread at its next safe point, in whichever process it is."""
        body = await Body.read(request)
        reason = body.take("reason", str, "")
        body.refuse_rest()
        thread = self._thread(request)
        turn = self._turns.find(thread)
        if turn is not None:
            turn.cancel(reason)
        else:
            await self._peek(thread)
            if not isinstance(self._turns.store, QueueStore):
                raise NothingToResume(f"no run of thread {thread.name!r} is in this process")
            if not await self._turns.agent.threads.cancel(thread.thread_id, reason):
                raise NothingToResume(f"no run of thread {thread.name!r} is open")
            with suppress(ThreadBusy):  # the process that has it gets the signal
                await self._turns.resume(thread)  # one that no process has ends only if a process takes it up
        return JSONResponse({"thread": thread.name}, 202)

    async def make_cookie(self, request: Request) -> Response:
        """Give a page the cookie that its ``EventSource`` reads events with."""
        made = self._users.make_cookie(user_of(request), time.time())
        answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
        if made:
            answer.set_cookie(
                self._users.cookie,
                made,
                max_age=COOKIE_SECONDS,
                path="/api/threads",
                # Browsers may take no secure cookie without TLS; from elsewhere the server is reached through a proxy.
                secure=not is_loopback_name(request.headers.get("host", "")),
                httponly=True,
                samesite="strict",
            )
        return answer

    # -- threads ----------------------------------------------------------------------------------

    async def list_threads(self, request: Request) -> Response:
        """The user's threads, the most recently changed first."""
        user = user_of(request)
        after = request.query_params.get("after")
        limit = request.query_params.get("limit", str(_PAGE))
        # Python refuses to read numbers that are very long.
        if not limit.isascii() or not limit.isdigit() or len(limit) > _DIGITS or not 1 <= int(limit) <= _PAGE:
            raise Problem.of_input(f"limit must be a number from 1 to {_PAGE}, got {limit!r:.40}", param="limit")
        query = ThreadQuery(
            metadata={USER_ENTRY: user},
            limit=int(limit),
            after=None if after is None else ThreadName.of(user, after).thread_id,
        )
        found = []
        try:
            infos = await self._turns.store.threads(query)
        except StoreError:
            raise
        except JournalError:
            raise Problem.of_input(
                f"no list goes on behind thread {after!r}, which does not exist", param="after"
            ) from None
        for info in infos:
            thread = ThreadName.parse(info.thread_id)
            if thread is not None and thread.user == user:
                found.append(info_to_json(thread, info))
        return JSONResponse({"threads": found})

    async def show(self, request: Request) -> Response:
        """A thread with its conversation."""
        thread = self._thread(request)
        host = await self._peek(thread)
        return JSONResponse(thread_to_json(thread, host, is_running=self._turns.find(thread) is not None))

    async def events(self, request: Request) -> ASGIApp:
        """The events of a thread behind ``Last-Event-ID``, or all of them, until its run ends or asks a person."""
        thread = self._thread(request)
        after = Place.parse(request.headers.get("last-event-id") or request.query_params.get("last_event_id"))
        host = await self._peek(thread)
        if after > Place.behind(host.claim.head):
            raise Problem.of_input(f"thread {thread.name!r} has no event {after}", param="Last-Event-ID")
        if self._turns.find(thread) is None and await is_at_end(self._turns.store, thread, after):
            return Response(status_code=204)  # an EventSource does not come again then
        listening = ExitStack()
        feed = listening.enter_context(self._turns.listen(thread))
        return EventStream(self._follow(thread, feed, after=after), on_close=listening.close)

    def _thread(self, request: Request) -> ThreadName:
        return ThreadName.of(user_of(request), request.path_params["thread"])

    async def _peek(self, thread: ThreadName) -> JournalHost:
        host = await JournalHost.peek(self._turns.store, thread.thread_id)
        if host is None:
            raise unknown_thread(thread)
        return host
