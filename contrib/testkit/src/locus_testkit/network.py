"""`NetworkGuard`: tests that reach no further than this machine, and say who tried to.

It listens to Python's own audit events about sockets, so it makes no difference who connects, how, and
in which thread; asyncio and trio, UDP and names that would be looked up included. Programs that a test starts, and
libraries that open sockets past Python, are out of its reach.
"""

from __future__ import annotations

import inspect
import ipaddress
import os
import socket
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, final

__all__ = ["NetworkGuard", "NetworkRefused"]

#: Families that do not leave the machine by themselves.
_LOCAL = frozenset(getattr(socket, name) for name in ("AF_UNIX", "AF_NETLINK", "AF_ALG") if hasattr(socket, name))
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_LIBRARY = tuple(
    {str(Path(sysconfig.get_path(name)).resolve()) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_HERE = str(Path(__file__).resolve())


class NetworkRefused(AssertionError):
    """Something tried to reach beyond this machine. Not an `OSError`, so that nothing retries.

    Args:
        what: ``"connect to"``, ``"send to"`` or ``"look up"``.
        where: host and port, or a name.
        who: the places in the code, innermost first.
    """

    def __init__(self, what: str, where: str, who: tuple[str, ...]) -> None:
        self.what, self.where, self.who = what, where, who
        by = "\n  ".join(who)
        super().__init__(
            f"a test tried to {what} {where}, and tests reach this machine only; answer it from a cassette, a "
            f"ScriptedModel or a server on loopback, or mark the test @pytest.mark.network\n  {by}"
        )


@final
class NetworkGuard:
    """Refuses what goes beyond loopback, in the whole process, as long as it is entered.

    Of guards that are entered within each other the innermost counts. Unix sockets are not concerned.

    Args:
        hosts: names and addresses that may be reached nevertheless.
    """

    def __init__(self, *hosts: str) -> None:
        self.hosts = frozenset(host.lower() for host in hosts)
        #: What was refused, oldest first: the program may have swallowed the error.
        self.refused: list[NetworkRefused] = []

    def __enter__(self) -> NetworkGuard:
        _listen()
        _enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _leave(self)

    @contextmanager
    def allow(self, *hosts: str) -> Iterator[None]:
        """Let some hosts be reached meanwhile; without any, every one."""
        inner = NetworkGuard(*self.hosts, *hosts) if hosts else _EVERYWHERE
        if hosts:
            inner.refused = self.refused
        _enter(inner)
        try:
            yield
        finally:
            _leave(inner)

    def _refuse(self, what: str, where: str) -> None:
        error = NetworkRefused(what, where, _who())
        self.refused.append(error)
        raise error

    def check_name(self, host: Any, what: str) -> None:
        """Refuse a name that would be looked up, unless it is this machine's; a numeric address is not looked up.

        Raises:
            NetworkRefused: it may not be.
        """
        text = _text(host)
        if text is not None and _address(text) is None and not _is_here(text) and text.lower() not in self.hosts:
            self._refuse(what, repr(text))

    def check_address(self, sock: Any, address: Any, what: str) -> None:
        """Refuse an address beyond this machine.

        Raises:
            NetworkRefused: it is one.
        """
        family = getattr(sock, "family", None)
        if address is None or family in _LOCAL:
            return
        if family not in _INTERNET or not isinstance(address, tuple) or not address:
            self._refuse(what, f"{address!r} ({family!r})")
        host = _text(address[0]) or ""
        numeric = _address(host)
        here = _is_here(host) if numeric is None else _is_loopback(numeric)
        if not here and host.lower() not in self.hosts and not self._is_allowed(host):
            if what == "connect to" and isinstance(sock, socket.socket):
                sock.close()  # its owner expects an OSError, and would leave it open
            self._refuse(what, f"{host}:{address[1]}" if len(address) > 1 else host)

    def _is_allowed(self, host: str) -> bool:
        """Whether an address is that of a host that may be reached."""
        for name in self.hosts:
            if _address(name) is None:
                try:
                    found = socket.getaddrinfo(name, None)
                except OSError:
                    continue
                if host in (each[4][0] for each in found):
                    return True
        return False


_guards: list[NetworkGuard] = []
_EVERYWHERE = NetworkGuard()
_listening = threading.Lock()
_heard: list[bool] = []


def _listen() -> None:
    """Listen to Python's audit events; a hook stays for as long as the process lives."""
    with _listening:
        if not _heard:
            _heard.append(True)
            sys.addaudithook(_hear)


def _enter(guard: NetworkGuard) -> None:
    with _listening:
        if not _guards:
            for name, method in _SOCKET.items():
                setattr(socket.socket, name, method)
        _guards.append(guard)


def _leave(guard: NetworkGuard) -> None:
    with _listening:
        _guards.remove(guard)
        if not _guards:
            for name, method in _SOCKET.items():
                if vars(socket.socket).get(name) is method:
                    delattr(socket.socket, name)


def _before(name: str, what: str) -> Callable[..., Any]:
    """A method of sockets that first looks at the name it is given: Python's audit event comes after the look-up."""
    plain = getattr(socket.socket, name)

    @wraps(plain)
    def method(sock: socket.socket, *args: Any) -> Any:
        guard = _guards[-1] if _guards else _EVERYWHERE
        address = args[-1] if args else None
        if guard is not _EVERYWHERE and isinstance(address, tuple) and address:
            host = _text(address[0])
            if host is not None and _address(host) is None:
                guard.check_address(sock, address, what)
        return plain(sock, *args)

    return method


_SOCKET = {
    name: _before(name, what)
    for name, what in (("connect", "connect to"), ("connect_ex", "connect to"), ("sendto", "send to"))
}


def _hear(event: str, args: tuple[Any, ...]) -> None:
    # Every event of the process comes by here; few of them are about sockets.
    kind = _EVENTS.get(event)
    if kind is None or not _guards or _guards[-1] is _EVERYWHERE:
        return
    guard = _guards[-1]
    if kind == "look up":
        guard.check_name(args[0], kind)
    elif kind == "name":
        guard.check_address(_AnySocket, args[0], "look up")
    else:
        guard.check_address(args[0], args[1], kind)


class _AnySocket:
    family = socket.AF_INET


_EVENTS = {
    "socket.connect": "connect to",
    "socket.sendto": "send to",
    "socket.sendmsg": "send to",
    "socket.getaddrinfo": "look up",
    "socket.gethostbyname": "look up",
    "socket.gethostbyaddr": "look up",
    "socket.getnameinfo": "name",
}


def _text(host: Any) -> str | None:
    if isinstance(host, bytes | bytearray):
        return bytes(host).decode("ascii", "replace")
    return host if isinstance(host, str) else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None) or address
    # Connecting to "any address" reaches the machine itself.
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _is_here(name: str) -> bool:
    """Whether a name is one of this machine (RFC 6761 for the first two)."""
    name = name.lower().rstrip(".")
    return name in ("", "localhost") or name.endswith(".localhost") or name == _own_name()


def _own_name() -> str:
    return socket.gethostname().lower()


def _who() -> tuple[str, ...]:
    """The places in the code that led here, innermost first: those of the program, or else of its libraries."""
    own, all_of_them = [], []
    frame = inspect.currentframe()
    while frame is not None:
        code = frame.f_code
        if code.co_filename != _HERE and not code.co_filename.startswith("<"):
            place = f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
            all_of_them.append(place)
            if not code.co_filename.startswith(_LIBRARY):
                own.append(place)
        frame = frame.f_back
    places = (own or all_of_them)[:5]
    thread = threading.current_thread()
    if thread is not threading.main_thread():
        places.append(f"in the thread {thread.name!r}")
    # A task's own stack does not say who began it.
    during = os.environ.get("PYTEST_CURRENT_TEST")
    if during:
        places.append(f"during {during}")
    return tuple(places)
