"""How a server is authenticated, and how this client is: from settings, the address and the variables of libpq.

The driver reads the last two by itself, but its default is ``prefer``, which believes any server, and it takes no
certificates apart from its variables. So it is left alone only where the mode is said there and nothing here.
"""

from __future__ import annotations

import ssl
from typing import Any

from locus.core.errors import ConfigError
from locus_plugin_postgres.address import Address
from locus_plugin_postgres.settings import PostgresSettings

__all__ = ["arguments"]

_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def arguments(address: Address, settings: PostgresSettings) -> dict[str, Any]:
    """What the driver takes to connect.

    Raises:
        ConfigError: a file of certificates cannot be read, or is not used in this mode.
    """
    made: dict[str, Any] = {"dsn": address.url}
    if settings.password is not None:
        made["password"] = settings.password.areveal
    said = address.look_up("sslmode", "PGSSLMODE")
    names_files = settings.ca_file is not None or settings.cert_file is not None
    if said is not None and settings.tls is None and not (names_files and said in _MODES):
        return made
    default = "prefer" if address.is_local and not names_files else "verify-full"
    mode = settings.tls or said or default
    if mode in ("require", "verify-ca", "verify-full"):
        made["ssl"] = _context(address, settings, mode)
        return made
    if names_files:
        raise ConfigError(
            f"tls={mode!r} looks at no certificate and shows none, but ca_file or cert_file names one; "
            "set tls to 'verify-full', or leave the files out"
        )
    made["ssl"] = mode
    return made


def _context(address: Address, settings: PostgresSettings, mode: str) -> ssl.SSLContext:
    ca = settings.ca_file or address.look_up("sslrootcert", "PGSSLROOTCERT")
    cert = settings.cert_file or address.look_up("sslcert", "PGSSLCERT")
    key = settings.key_file or (None if settings.cert_file else address.look_up("sslkey", "PGSSLKEY"))
    try:
        context = ssl.create_default_context(cafile=None if ca == "system" else ca)
        context.check_hostname = mode == "verify-full"
        if mode == "require" and ca is None:  # with one, libpq checks it, too
            context.verify_mode = ssl.CERT_NONE
        if cert is not None:
            context.load_cert_chain(cert, key)
    except OSError as e:
        files = ", ".join(filter(None, (ca, cert, key)))
        raise ConfigError(f"the certificates in {files} cannot be read: {e}; name files in PEM format") from e
    return context
