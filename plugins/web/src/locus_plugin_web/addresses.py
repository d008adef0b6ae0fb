"""Which addresses may be reached: those of the public internet, and what the settings allow.

The author of a page chooses the addresses in it, so an agent that opens them could be sent into the network that it
runs in: to services on this machine, in the house, or to the cloud's metadata. A name is no better than an address: its
owner decides what it resolves to, and may decide otherwise a moment later. So a name is resolved once, each of its
addresses is judged, and the connection is made to one that was.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import anyio
import httpx2
from attrs import frozen

from locus_kit.invisible import escape_invisible, is_visible
from locus_plugin_web.errors import FetchFailed, FetchRefused

__all__ = ["AddressGuard", "Resolve", "Target", "is_public", "normalize_place", "resolve_name"]

#: Gives the addresses of a name, as text.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_PORTS = {"http": 80, "https": 443}
_LONGEST_URL = 4_000
_SHOWN = 200

# `is_global` knows the registries of special addresses as they were when that Python was made, so what counts is said
# here as well: https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry.
_REFUSED_4 = [
    ip_network(each)
    for each in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by the customers of a carrier (CGNAT)
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: a cloud's metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
]
#: All of IPv6 that is routed: what maps, translates or is local lies outside of it, but for the next ones.
_ROUTED_6 = ip_network("2000::/3")
_REFUSED_6 = [
    ip_network(each)
    for each in (
        "2001::/23",  # Teredo, which holds an IPv4 address, and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4: holds an IPv4 address
        "3fff::/20",
    )
]


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is of the public internet.

    Loopback, private, link-local, shared, multicast, reserved and unspecified ones are not, nor is an IPv6 address that
    holds an IPv4 one (mapped, NAT64, 6to4, Teredo): what it reaches depends on the network.
    """
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in each for each in _REFUSED_4)
    return address in _ROUTED_6 and not any(address in each for each in _REFUSED_6)


@frozen
class Target:
    """A URL that may be asked for.

    Args:
        url: without a fragment.
        host: of it, in ASCII and lower case.
        port: of it.
    """

    url: httpx2.URL
    host: str
    port: int

    @property
    def place(self) -> str:
        """Host and port, as the settings name them."""
        return normalize_place(self.host, self.port)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.url.scheme}://{self.place}"


def normalize_place(host: str, port: int) -> str:
    """``"host:port"``, or ``"[address]:port"`` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system's resolver gives them."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class AddressGuard:
    """Judges URLs and the addresses behind their names.

    Args:
        allow: hosts with a port (``"127.0.0.1:8000"``) that may be reached whatever their addresses are.
        resolve: gives the addresses of a name; None = the system's resolver.
    """

    def __init__(self, allow: Collection[str] = (), resolve: Resolve | None = None) -> None:
        self._allow = frozenset(each.lower() for each in allow)
        self._resolve = resolve_name if resolve is None else resolve

    def check(self, text: str) -> Target:
        """The target of a URL that may be asked for.

        Args:
            text: the whole URL.

        Raises:
            FetchRefused: its form, scheme, user or port is not accepted.
        """
        shown = _show(text)
        if len(text) > _LONGEST_URL:
            raise FetchRefused(f"expected a URL of at most {_LONGEST_URL:,} characters, got {len(text):,}: {shown}")
        if not all(map(is_visible, text)) or any(each.isspace() for each in text):
            raise FetchRefused(f"expected a URL without blanks and control characters, got {shown}")
        try:
            url = httpx2.URL(text).copy_with(fragment=None)
            host = url.raw_host.decode("ascii").lower().rstrip(".")
            port = _PORTS.get(url.scheme, 0) if url.port is None else url.port
        except (httpx2.InvalidURL, UnicodeError, ValueError) as e:
            raise FetchRefused(f"{shown} is not a valid URL: {_show(str(e))}") from None
        if url.scheme not in _PORTS or not host:
            raise FetchRefused(f"expected a whole URL that begins with http:// or https://, got {shown}")
        if url.userinfo:
            raise FetchRefused("expected a URL without a user name or password")
        target = Target(url, host.strip("[]"), port)
        if port not in _PORTS.values() and target.place not in self._allow:
            raise FetchRefused(f"port {port} is not allowed, only 80 and 443: {shown}")
        return target

    async def addresses(self, target: Target) -> tuple[str, ...]:
        """The addresses of a target that may be connected to; at least one.

        Raises:
            FetchFailed: the name has none.
            FetchRefused: none of them is of the public internet.
        """
        try:
            found = list(dict.fromkeys(await self._resolve(target.host, target.port)))
        except (OSError, UnicodeError) as e:
            raise FetchFailed(f"{target.host} cannot be found: {_show(str(e))}") from None
        if not found:
            raise FetchFailed(f"{target.host} cannot be found: the name has no address")
        if target.place in self._allow:
            return tuple(found)
        public = tuple(each for each in found if is_public(ip_address(each)))
        if not public:
            raise FetchRefused(
                f"{target.host} is not on the public internet ({', '.join(found[:3])}), so it is not reached"
            )
        return public


def _show(text: str) -> str:
    shown = escape_invisible(text[:_SHOWN])
    return f"{shown}..." if len(text) > _SHOWN else shown
