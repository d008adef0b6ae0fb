"""Where the servers are and how to be let in. Nothing of that is ever in a message, a repr or a log."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import field, frozen

from locus.core.errors import ConfigError
from locus.plugins import redact
from locus_plugin_nats.settings import NatsSettings

__all__ = ["Address", "parse_address"]

_SCHEMES = ("nats", "tls", "ws", "wss")
_PORT = 4222

#: What the files of users hold, so that another file is a mistake of the settings, and not the server's refusal.
_KEY = rb"SU[A-Z2-7]{56}"
_SEED = re.compile(rb"\A\s*" + _KEY + rb"\s*\Z")
_CREDS = re.compile(
    rb"-----BEGIN NATS USER JWT-----\s+[\w-]+\.[\w-]+\.[\w-]+\s+-{3,}END .*-----BEGIN USER NKEY SEED-----\s+" + _KEY,
    re.DOTALL,
)


@frozen
class Address:
    """The servers of one cluster.

    Args:
        servers: their addresses, without credentials.
        user: from the address, or None.
        password: from the address, or None.
        token: from the address, or None.
    """

    servers: tuple[str, ...]
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ",".join(self.servers)

    def options(self, settings: NatsSettings) -> Mapping[str, Any]:
        """What nats-py is given to connect.

        Raises:
            ConfigError: two ways to be let in are given, or a file of credentials or certificates cannot be read.
        """
        user, password, token = settings.user or self.user, self.password, self.token
        if settings.password is not None:
            password = settings.password.reveal()
        if settings.token is not None:
            token = settings.token.reveal()
        ways = {"user": user, "token": token, "creds": settings.creds, "nkey": settings.nkey}
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise ConfigError(f"[plugins.nats]: expected one of user, token, creds and nkey, got {', '.join(given)}")
        found: dict[str, Any] = {"servers": list(self.servers)}
        found |= {"user": user, "password": password} if user else {}
        found |= {"token": token} if token else {}
        if settings.creds:
            found["user_credentials"] = str(_readable("creds", settings.creds, _CREDS, "JWT and key of a user"))
        if settings.nkey:
            found["nkeys_seed"] = str(_readable("nkey", settings.nkey, _SEED, "seed of a user"))
        tls = _tls(settings)
        return found if tls is None else found | {"tls": tls}


def _readable(name: str, path: str, form: re.Pattern[bytes] | None = None, what: str = "") -> Path:
    found = Path(path).expanduser()
    try:
        content = found.read_bytes()
    except OSError as e:
        raise ConfigError(f"[plugins.nats] {name}: {found} cannot be read: {e.strerror or e}") from e
    if form is not None and not form.search(content):
        raise ConfigError(f"[plugins.nats] {name}: {found} has no {what}; write it with nsc, or correct the path")
    return found


def _tls(settings: NatsSettings) -> ssl.SSLContext | None:
    if settings.tls_ca is settings.tls_cert is settings.tls_key is None:
        return None
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise ConfigError("[plugins.nats]: tls_cert and tls_key belong together; give both or neither")
    ca = None if settings.tls_ca is None else _readable("tls_ca", settings.tls_ca)
    try:
        context = ssl.create_default_context(cafile=ca)
        if settings.tls_cert is not None and settings.tls_key is not None:
            key = _readable("tls_key", settings.tls_key)
            context.load_cert_chain(_readable("tls_cert", settings.tls_cert), key)
    except ssl.SSLError as e:
        raise ConfigError(f"[plugins.nats]: the certificates cannot be used: {e.reason or 'damaged'}") from None
    return context


def parse_address(text: str) -> Address:
    """The servers that a text names: ``"nats://a:4222"``, ``"a:4222,b:4222"``, ``"tls://user:password@a"``.

    Raises:
        ConfigError: it names none, or a port or scheme is wrong.
    """
    if text.startswith("//"):
        text = f"nats:{text}"
    servers: list[str] = []
    users: set[tuple[str | None, str | None]] = set()
    scheme = "nats"
    for each in (part.strip() for part in text.split(",")):
        parts = urlsplit(each if "://" in each else f"{scheme}://{each}")
        try:
            host, port = parts.hostname, parts.port or _PORT
        except ValueError:
            host = None
        if host is None or parts.scheme not in _SCHEMES or parts.path not in ("", "/") or parts.query:
            raise ConfigError(
                f"expected the address of a NATS server, such as 'nats://localhost:4222', got {redact(each)!r}"
            )
        scheme = parts.scheme
        users.add((parts.username, parts.password))
        servers.append(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
    users.discard((None, None))
    if len(users) > 1:
        raise ConfigError("the servers of one address are given different users; give one user for all of them")
    name, password = next(iter(users), (None, None))
    name, password = name and unquote(name), password and unquote(password)
    if password is None:
        return Address(tuple(servers), token=name)
    return Address(tuple(servers), name, password)
