"""Who may ask: the browser that was given the token, on this machine, from a page of this server.

A page of this server shows what models and tools said, and may answer for its user. Three things are checked before a
request is looked at:

- the ``Host`` is one that this server is known by. A foreign name that was pointed at this machine (DNS rebinding)
  makes a browser send its own name there, and is refused.
- the cookie is the session's. It is given for the token in the printed address, once, and is sent to no other site
  (``HttpOnly``, ``SameSite=Strict``). Its name has the port, for cookies are shared by the ports of a host.
- what changes something has the ``Origin`` of this server, so that no other page can make the browser send it.

The policy of the pages allows no script and no style but the files of this server, and nothing inline: a text that
would get past the escaping of the templates has no effect.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOOPBACK", "Gate"]

#: The names of this machine on its loopback device.
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

_SAFE: Final = frozenset({"GET", "HEAD"})

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With "no-referrer" browsers would send `Origin: null` with forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_NO_SESSION: Final = (
    "This page needs the address that `locus view` printed, with its token. A token is good for one browser and works "
    "once: start `locus view` again for another.\n"
)


class Gate:
    """Wraps an application: lets through what may ask, and gives every response its headers.

    Args:
        app: the application.
        token: what the first request must bring, as ``?token=``.
        hosts: the names that this server is known by; without ports.
        read_only: refuse whatever changes something.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str] = LOOPBACK, read_only: bool = False) -> None:
        self._app, self._token, self._hosts, self._read_only = app, token, frozenset(hosts), read_only
        self._session = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._check(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> Response | None:
        """Why a request is not passed on, or None."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name, port = _split(host)
        if name not in self._hosts:
            return PlainTextResponse("This server does not have that name.\n", 421)
        if scope["path"].startswith("/static/") and scope["method"] in _SAFE:
            return None
        cookie = f"locus-view-{port}"
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] == "/" and scope["method"] == "GET" and given is not None:
            return self._exchange(given[0], cookie)
        if not any(secrets.compare_digest(each.encode(), self._session.encode()) for each in _cookies(headers, cookie)):
            return PlainTextResponse(_NO_SESSION, 401)
        if scope["method"] in _SAFE:
            return None
        if headers.get("origin") != f"{scope['scheme']}://{host}":
            return PlainTextResponse("Only the pages of this server may ask for that.\n", 403)
        if self._read_only:
            return PlainTextResponse("This viewer was started with --read-only.\n", 403)
        return None

    def _exchange(self, given: str, cookie: str) -> Response:
        """A session for the token, which is good once."""
        if not self._token or not secrets.compare_digest(given.encode(), self._token.encode()):
            return PlainTextResponse(_NO_SESSION, 401)
        self._token = ""
        response = RedirectResponse("/", 303)
        response.set_cookie(cookie, self._session, path="/", httponly=True, samesite="strict")
        return response


def _split(host: str) -> tuple[str, str]:
    """The name and the port of a ``Host``; an empty name where it is not valid."""
    try:
        parts = urlsplit(f"//{host}")
        if parts.username is not None or parts.path or parts.query or parts.fragment:
            return "", ""
        return (parts.hostname or ""), str(parts.port or 80)
    except ValueError:
        return "", ""


def _cookies(headers: Headers, name: str) -> list[str]:
    """The values of the cookies of a name.

    A browser also sends those of other programs of this host: what they say must not hide ours, be it in no form that
    a parser knows or with our name. So the header is split and nothing is unquoted, for a session has letters, digits,
    ``-`` and ``_`` alone. Which of two cookies of one name comes first, a server cannot know: any may be the right one.
    """
    pairs = (each.partition("=") for line in headers.getlist("cookie") for each in line.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]
