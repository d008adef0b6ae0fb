"""Where the server is. An address may hold a password, so this is the one place that looks into it."""

from __future__ import annotations

import os
import re
import ssl
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from attrs import field, frozen

from locus.core.errors import ConfigError
from locus_plugin_postgres.settings import PostgresSettings

__all__ = ["Address"]

#: A host, or an address of IPv6 in brackets, and a port.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:@/?#,]*)(:\d+)?")

_UNREADABLE = (
    "the address of a PostgreSQL server cannot be read; write postgres://USER@HOST:PORT/DATABASE, with %40 for '@', "
    "%2F for '/', %3F for '?', %23 for '#' and %3A for ':' in a name or a password, or set the password apart, in "
    "PGPASSWORD or as a setting"
)


@frozen
class Address:
    """An address of a server.

    Args:
        url: the address as the driver reads it.
        shown: host, port and database, for people.
        is_local: whether every host is this machine.
    """

    url: str = field(repr=False)
    shown: str
    is_local: bool

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address.

        Args:
            text: ``"postgres://..."`` or ``"postgresql://..."``; what it leaves out, the variables of libpq say.

        Raises:
            ConfigError: it cannot be read. The message does not repeat it.
        """
        found = _parse(text)
        if found is None:  # raised here, so that what was read of a password is in no traceback
            raise ConfigError(_UNREADABLE)
        return found

    def arguments(self, settings: PostgresSettings) -> dict[str, Any]:
        """What the driver takes to connect.

        Raises:
            ConfigError: a file of certificates cannot be read.
        """
        made: dict[str, Any] = {"dsn": self.url}
        if settings.password is not None:
            made["password"] = settings.password.areveal
        tls = settings.tls
        if tls is None and "sslmode" not in _query(self.url) and "PGSSLMODE" not in os.environ:
            tls = "prefer" if self.is_local else "verify-full"
        if tls in ("verify-ca", "verify-full"):
            made["ssl"] = _context(settings, check_hostname=tls == "verify-full")
        elif tls is not None:
            made["ssl"] = tls
        return made


def _query(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


def _parse(text: str) -> Address | None:
    scheme, _, rest = text.partition("://")
    if scheme not in ("postgres", "postgresql") or "#" in rest:
        return None
    place, _, _ = rest.partition("/")
    place, _, _ = place.partition("?")
    # An '@' further on ends a password that holds one of the delimiters unescaped.
    if "@" in rest[len(place) :] or any(ord(each) <= 32 for each in text):
        return None
    hosts = place.rpartition("@")[2].split(",")
    if not all(_HOST.fullmatch(host) for host in hosts):
        return None
    url = f"postgresql://{rest}"
    database = unquote(urlsplit(url).path.lstrip("/"))
    named = [host for host in hosts if host] or _query(url).get("host", []) or [os.environ.get("PGHOST", "")]
    shown = ",".join(unquote(host) for host in named if host) or "this machine"
    return Address(url, f"{shown}/{database}" if database else shown, all(map(_is_local, named)))


def _is_local(host: str) -> bool:
    name = re.sub(r":\d+$", "", unquote(host)).strip("[]")
    return name in ("", "localhost", "::1") or name.startswith(("/", "127."))


def _context(settings: PostgresSettings, *, check_hostname: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        context.check_hostname = check_hostname
        if settings.cert_file is not None:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as e:
        files = ", ".join(filter(None, (settings.ca_file, settings.cert_file, settings.key_file)))
        raise ConfigError(f"the certificates in {files} cannot be read: {e}; name files in PEM format") from e
    return context
