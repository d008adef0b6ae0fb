"""`GuardedTransport`: connects to an address that was judged, and to no other.

The name is put in the request, in TLS's server name, and in the check of the certificate; the address alone in the
connection. Nothing of the environment decides anything: no proxy, no password file.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx2

from locus_plugin_web.addresses import AddressGuard, Target

__all__ = ["GuardedTransport", "tls_context"]

#: How many addresses of a name are tried.
_TRIED = 3


@cache
def tls_context() -> ssl.SSLContext:
    """The certificates to trust; read once."""
    return httpx2.create_ssl_context()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves the host of a request once and connects to what was found. One request, one connection.

    A connection that was kept could be used for another name at the same address, whose certificate was not checked.

    Args:
        guard: judges the addresses.
        target: of the request.
        tls: the certificates to trust.
    """

    def __init__(self, guard: AddressGuard, target: Target, tls: ssl.SSLContext) -> None:
        self._guard, self._target = guard, target
        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            WebError: no address of the host may be reached.
            httpx2.TransportError: none answers.
        """
        addresses = await self._guard.addresses(self._target)
        for i, address in enumerate(addresses[:_TRIED], 1):
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # with the Host of the name
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": self._target.host},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if i == min(_TRIED, len(addresses)):
                    raise
        raise AssertionError("a target has at least one address")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()
