"""The settings of the plugin: the table ``[plugins.nats]``."""

from __future__ import annotations

import re
from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus.plugins import Secret
from locus_kit.validators import integer, number, optional, seconds

__all__ = ["Durability", "NatsSettings"]

#: What the operator of the server promises; see `NatsSettings.durability`.
Durability = Literal["process", "fsync", "replicated"]

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def _prefix(_: object, attribute: Attribute[Any], value: str) -> None:
    if not _PREFIX.fullmatch(value):
        raise ValueError(
            f"{attribute.name} must be a letter and up to 31 letters, digits, '-' or '_', as the names of streams and "
            f"subjects begin with it, got {value!r}"
        )


def _http(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise ValueError(f"{attribute.name} must be an address such as 'http://db1:8222', got {value!r}")


@frozen(kw_only=True)
class NatsSettings:
    """How journals are kept on a NATS server, and how it is reached.

    Args:
        prefix: how the names of the streams (in capitals) and of their subjects begin. Stores with another prefix do
            not see each other's threads.
        lease: seconds after which a worker that says nothing is taken for dead, 1 or more. It is renewed three times in
            that time, by a timer; the server's clock alone decides.
        patience: seconds for which an unreachable server is waited for, and an append whose answer was lost is
            resolved, before `NatsUnreachable`.
        durability: what the operator promises of the server, because a client cannot see it. ``"process"``: what was
            acknowledged survives the death of the server's process, and a power cut takes what is young. ``"fsync"``:
            the server syncs each write (``sync_interval: always``), which is checked where `monitor` is given.
            ``"replicated"``: the streams have 3 replicas or
            more; that one is checked.
        monitor: address of the server's monitoring endpoint, such as ``"http://db1:8222"``; None = nothing is checked.
        replicas: of streams that are created, from 1 to 5.
        max_bytes: of the stream of journals when it is created; None = the server's limits. What does not fit is
            refused with `StreamFull`; old entries never make room for new ones.
        user: who to connect as.
        password: of that user.
        token: where the server asks for one.
        creds: path of a file with a JWT and its key, as ``nsc`` writes it.
        nkey: path of a file with the seed of an NKey.
        tls_ca: path of the certificate authorities to trust; None = the system's.
        tls_cert: path of the certificate that this client shows.
        tls_key: path of its key.
    """

    prefix: str = field(default="locus", validator=_prefix)
    lease: float = field(default=30.0, validator=number(1))
    patience: float = field(default=10.0, validator=seconds)
    durability: Durability = field(default="process", validator=in_(("process", "fsync", "replicated")))
    monitor: str | None = field(default=None, validator=optional(_http))
    replicas: int = field(default=1, validator=integer(1, 5))
    max_bytes: int | None = field(default=None, validator=optional(integer(1)))
    user: str | None = None
    password: Secret | None = None
    token: Secret | None = None
    creds: str | None = None
    nkey: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
