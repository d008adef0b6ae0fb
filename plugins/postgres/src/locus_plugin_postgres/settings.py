"""The settings of the plugin: the tables ``[plugins.postgres]`` and ``[plugins.postgresql]``."""

from __future__ import annotations

import re
from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus.plugins import Secret
from locus_kit.validators import integer, number, optional

__all__ = ["PostgresSettings", "Sync", "Tls"]

#: How far a commit has got when it is reported: to the disk of the server, or to its memory.
Sync = Literal["full", "normal"]

#: As libpq names them, from no encryption to a certificate that is checked together with its host name.
Tls = Literal["disable", "prefer", "require", "verify-ca", "verify-full"]


def _name(_: object, attribute: Attribute[Any], value: str) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", value):
        raise ValueError(
            f"{attribute.name} must be letters, digits and '_', 63 at most and no digit first, got {value!r}"
        )


@frozen(kw_only=True)
class PostgresSettings:
    """How journals are kept on a server.

    Args:
        schema: the schema that holds the tables; it is created where that is allowed.
        password: of the user; None = what the address, ``PGPASSWORD`` or ``~/.pgpass`` says. A function is asked for
            each connection, as tokens that expire need it.
        tls: how the server is authenticated; None = what the address or ``PGSSLMODE`` says, else ``"verify-full"``
            for a server on another machine, or with one of the files below, and ``"prefer"`` for one on this machine.
            ``"require"`` looks at the certificate where ``ca_file`` is given, as libpq does.
        ca_file: certificates that sign that of the server; None = those that the system trusts.
        cert_file: certificate of the client, where the server asks for one.
        key_file: its private key.
        sync: ``"full"``: what was committed survives a crash of the server. ``"normal"``: such a crash may take the
            newest commits back, in order, so an effect may happen a second time.
        lease: seconds after which a worker that does not renew its claims is taken for dead. It is renewed three times
            in that time, by a timer; the clock of the server decides.
        patience: seconds to reach a server that is away before `PostgresUnreachable`. What became of a write whose
            answer was lost is found out in that time.
        connections: the most that a store opens.
        pooler: whether a pooler in transaction mode, such as PgBouncer, is in between.
    """

    schema: str = field(default="locus", validator=_name)
    password: Secret | None = None
    tls: Tls | None = field(
        default=None, validator=optional(in_(("disable", "prefer", "require", "verify-ca", "verify-full")))
    )
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    sync: Sync = field(default="full", validator=in_(("full", "normal")))
    lease: float = field(default=30.0, validator=number(above=0, unit="seconds"))
    patience: float = field(default=10.0, validator=number(above=0, unit="seconds"))
    connections: int = field(default=4, validator=integer(1))
    pooler: bool = False
