"""Where the server is: ``OLLAMA_HOST`` and the setting ``base_url``, in every form that Ollama itself reads.

The rules are those of ``envconfig.Host`` in Ollama's source: what starts the server finds it, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from attrs import frozen

from locus.core.errors import ConfigError

__all__ = ["Address", "address"]

_PORT = "11434"
_PORTS = {"http": "80", "https": "443"}

#: What a server listens on to be found under every address of its machine; one connects to the machine itself.
_ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # it is read here, nothing is bound to it


@frozen(kw_only=True)
class Address:
    """An address, taken apart.

    Args:
        scheme: ``"http"`` or ``"https"``.
        host: a name or an address, without brackets.
        port: digits.
        path: without slashes around it, or ``""``.
    """

    scheme: str
    host: str
    port: str
    path: str = ""

    @property
    def url(self) -> str:
        """``"http://127.0.0.1:11434"``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{f'/{self.path}' if self.path else ''}"

    @property
    def here(self) -> bool:
        """Whether it is this very machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def address(given: str | None, environ: Mapping[str, str]) -> Address:
    """The address of the server.

    An invalid port counts as left out, as it does for Ollama.

    Args:
        given: the setting, or None.
        environ: where ``OLLAMA_HOST`` may be.

    Raises:
        ConfigError: it holds a user or a password.
    """
    text = (environ.get("OLLAMA_HOST", "") if given is None else given).strip().strip("\"'").strip()
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = ("https", f"{text}:443") if text == "ollama.com" else ("http", text)
    scheme = scheme.lower()
    default = _PORTS.get(scheme, _PORT) if found else _PORT
    place, _, path = rest.partition("/")
    if "@" in place:
        raise ConfigError(
            f"the address of the ollama server holds a user ('...@{place.rpartition('@')[2]}'); leave that out, and "
            "give a key as api_key"
        )
    host, port = _split(place)
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        port = default
    return Address(scheme=scheme, host=_ANY.get(host, host), port=port, path=path.strip("/"))


def _split(place: str) -> tuple[str, str]:
    """Host and port; the port ``""`` if it is left out."""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        return host, rest.removeprefix(":")
    if place.count(":") > 1:  # an IPv6 address without brackets, so without a port
        return place, ""
    host, _, port = place.partition(":")
    return host, port
