"""Connections that show a key to one host only, and live as long as they are used.

There is one pool an event loop, counted by its users, so no loop ends with an open transport, and no user closes a
model or an agent. Calls outside a session open a connection and close it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any

import anyio
import httpx2
from anyio.lowlevel import RunVar

from locus_wire.encodings import ACCEPTED, unpack_within_bounds

__all__ = ["Pools", "Session", "http_client"]

#: Seconds that closing a pool may take.
_CLOSING = 2.0


class _Pool:
    """The connections of one event loop; opened by the first request."""

    __slots__ = ("_http", "_make", "users")

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._http: httpx2.AsyncClient | None = None
        self.users = 0

    @property
    def http(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = self._make()
        return self._http

    async def aclose(self) -> None:
        if self._http is not None:
            with anyio.move_on_after(_CLOSING, shield=True):
                await self._http.aclose()


#: By owner, for each event loop: what a loop that was abandoned has left goes with it.
_OPEN: RunVar[dict[object, _Pool]] = RunVar("locus_wire.pools")


class Pools:
    """The pools of one client.

    The arguments are those of `http_client`; each event loop has as many connections.
    """

    def __init__(self, *, secure: bool, connections: int, connect_timeout: float, silence: float) -> None:
        self._make = partial(
            http_client, secure=secure, connections=connections, connect_timeout=connect_timeout, silence=silence
        )

    def session(self) -> Session:
        """Keeps connections open while it is entered; does not open any."""
        return Session(self, self._make)


class Session(AbstractAsyncContextManager[httpx2.AsyncClient | None]):
    """One use of the pool of the running event loop."""

    __slots__ = ("_make", "_owner", "_pool")

    def __init__(self, owner: Pools, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._owner, self._make = owner, make
        self._pool: _Pool | None = None

    async def __aenter__(self) -> Any:
        """Enter; gives the session."""
        pools = _OPEN.get(None)
        if pools is None:
            pools = {}
            _OPEN.set(pools)
        pool = pools.get(self._owner)
        if pool is None:
            pool = pools[self._owner] = _Pool(self._make)
        pool.users += 1
        self._pool = pool
        return self

    @property
    def http(self) -> httpx2.AsyncClient:
        """The connections."""
        assert self._pool is not None, "the session is not entered"
        return self._pool.http

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave; the last one closes the connections."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        pool.users -= 1
        if pool.users == 0:
            _OPEN.get({}).pop(self._owner, None)
            await pool.aclose()


def http_client(*, secure: bool, connections: int, connect_timeout: float, silence: float) -> httpx2.AsyncClient:
    """A client that follows no redirect, keeps no cookie, and asks a plain address directly.

    Args:
        secure: whether the address is https. What is asked of a plain one goes through no proxy that the environment
            names: a proxy would read the key.
        connections: the most at a time; who comes later waits.
        connect_timeout: seconds to make one.
        silence: seconds without a byte after which a connection is given up.
    """
    return httpx2.AsyncClient(
        verify=_verified_context() if secure else _unverified_context(),
        trust_env=secure,
        timeout=httpx2.Timeout(silence, connect=connect_timeout, pool=None),
        limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # runs share connections and nothing else
        follow_redirects=False,
        headers={"user-agent": "locus", **ACCEPTED},
        event_hooks={"response": [unpack_within_bounds]},
    )


@cache
def _verified_context() -> ssl.SSLContext:
    """Reading the certificates takes longer than everything else, so it is done once."""
    return httpx2.create_ssl_context()


@cache
def _unverified_context() -> ssl.SSLContext:
    # For addresses without TLS, which need none: it knows no certificate, so it would refuse every server.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
