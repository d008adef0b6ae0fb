"""Where the server is. An address may hold a password, so this is the one place that looks into it."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from attrs import field, frozen

from locus.core.errors import ConfigError

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
    """

    url: str = field(repr=False)
    shown: str

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

    @property
    def is_local(self) -> bool:
        """Whether every host is this machine, as far as the address, the service and the environment say now."""
        return all(map(_is_local, _hosts(self.url)))

    def look_up(self, parameter: str, variable: str) -> str | None:
        """What the address, its service, or the environment says of a parameter; the first of these that does.

        Args:
            parameter: as an address or a service file has it, such as ``"sslmode"``.
            variable: of the environment, such as ``"PGSSLMODE"``.
        """
        query = _query(self.url)
        return query.get(parameter) or _service(query).get(parameter) or os.environ.get(variable) or None


def _query(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def _service(query: dict[str, str]) -> Mapping[str, str]:
    """What the file of services says of the one that the address names; as the driver reads it."""
    name, file = query.get("service"), os.environ.get("PGSERVICEFILE")
    if name is None:
        return {}
    parser = configparser.ConfigParser()
    try:
        parser.read(file if file is not None else Path.home() / ".pg_service.conf", encoding="utf-8")
        return dict(parser[name])
    except (configparser.Error, KeyError, OSError, RuntimeError, UnicodeDecodeError):
        return {}  # the driver says what is wrong with it


def _hosts(url: str) -> list[str]:
    """The hosts that an address leads to, with their ports; an empty one is this machine."""
    query = _query(url)
    found = unquote(urlsplit(url).netloc.rpartition("@")[2]).split(",")
    for text in (query.get("host"), _service(query).get("host"), os.environ.get("PGHOST")):
        if any(found):
            break
        found = (text or "").split(",")
    return found


def _parse(text: str) -> Address | None:
    scheme, _, rest = text.partition("://")
    if scheme not in ("postgres", "postgresql") or "#" in rest:
        return None
    place, _, _ = rest.partition("/")
    place, _, _ = place.partition("?")
    # An '@' further on ends a password that holds one of the delimiters unescaped; two of them are one of a password.
    if place.count("@") > 1 or "@" in rest[len(place) :] or any(ord(each) <= 32 for each in text):
        return None
    if not all(_HOST.fullmatch(host) for host in place.rpartition("@")[2].split(",")):
        return None
    url = f"postgresql://{rest}"
    database = unquote(urlsplit(url).path.lstrip("/"))
    shown = ",".join(host for host in _hosts(url) if host) or "this machine"
    return Address(url, f"{shown}/{database}" if database else shown)


def _is_local(host: str) -> bool:
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host
    name = name.partition(":")[0] if name.count(":") == 1 else name
    if name in ("", "localhost") or name.startswith("/"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
