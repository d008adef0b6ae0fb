"""`Gate`: what every request passes before anything reads it, and where every error becomes an answer."""

from __future__ import annotations

import re
import time
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from locus_plugin_serve.answering import ClientLeft
from locus_plugin_serve.metrics import Metrics
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.settings import ServeSettings, is_loopback
from locus_plugin_serve.users import Users

__all__ = ["Gate", "is_loopback_name"]

#: Paths that need no token, since they say nothing about anybody's runs.
_OPEN = frozenset({"/healthz", "/.well-known/agent-card.json"})

#: Paths that are answered however many requests are open: who watches over the server must not take it for dead.
_WATCHED = frozenset({"/healthz", "/metrics"})

#: What a cookie is enough for.
_EVENTS = re.compile(r"/api/threads/[^/]+/events")

#: More digits than any length has; Python refuses to read numbers that are very long.
_DIGITS = 18

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Gate:
    """Checks the host, the origin, the token and the size of a request, and how many there are.

    Args:
        app: what answers the requests that pass.
        settings: the limits.
        users: who may ask.
        metrics: counts requests.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, users: Users, metrics: Metrics) -> None:
        self._app, self._settings, self._users, self._metrics = app, settings, users, metrics
        own = _LOOPBACK if is_loopback(settings.host) else frozenset()
        self._hosts: Collection[str] = own | {each.lower() for each in settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope.setdefault("app", self._app)  # so that the router raises what it would answer in plain text
        self._metrics.open_requests += 1
        try:
            self._check(scope)
            await self._app(scope, self._limit_body(scope, receive), note)
        except (ClientLeft, ClientDisconnect):  # before its answer, or in the middle of its body
            status = status or 499
        except Exception as e:  # noqa: BLE001  this is where errors become answers
            problem = _as_refusal(e, scope) if isinstance(e, HTTPException) else as_problem(e)
            if status == 0:
                await problem.to_response()(scope, receive, note)
        finally:
            self._metrics.open_requests -= 1
            self._metrics.requests[status or 499] += 1

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts and _name_of(host) not in self._hosts:
            # A page may have its own name lead to this address; its requests still have that name.
            raise Problem(421, f"this server is not reached as {host!r:.80}; add the name to [plugins.serve] hosts")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise Problem(403, f"pages of {origin!r:.80} may not use this server")
        if self._metrics.open_requests > self._settings.max_requests and scope["path"] not in _WATCHED:
            raise Problem.of_load(f"{self._settings.max_requests} requests are open, as many as may be")
        if scope["path"] not in _OPEN:
            scope["locus.user"] = self._identify(scope, headers)
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit():
            digits = length.lstrip("0")
            if len(digits) > _DIGITS or int(digits or "0") > self._settings.max_body_bytes:
                raise self._too_long()

    def _identify(self, scope: Scope, headers: Headers) -> str:
        token = headers.get("authorization")
        if token is None and scope["method"] == "GET" and _EVENTS.fullmatch(scope["path"]):
            cookie = cookie_parser(headers.get("cookie", "")).get(self._users.cookie)
            if cookie is not None:
                return self._users.read_cookie(cookie, time.time())
        return self._users.authenticate(None if token is None else token.encode("latin-1"))

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        left = self._settings.max_body_bytes

        async def read() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_long()
            return message

        return read

    def _too_long(self) -> Problem:
        return Problem(413, f"the body may have {self._settings.max_body_bytes:,} bytes", code="body_too_long")


def _as_refusal(error: HTTPException, scope: Scope) -> Problem:
    """What the router refuses: a method that a path does not have."""
    headers = dict(error.headers or {})
    text = f"{scope['method']:.20} is not possible at {scope['path']!r:.200}"
    if "Allow" in headers:
        text += f"; {headers['Allow']} is"
    return Problem(error.status_code, text, code="method_not_allowed", headers=headers)


def is_loopback_name(host: str) -> bool:
    """Whether a ``Host`` header names this machine, which a browser reaches without TLS."""
    return _name_of(host) in _LOOPBACK


def _name_of(host: str) -> str:
    """The name in a ``Host`` header, without the port."""
    name = host.lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]
