"""The settings of the plugin: the table ``[plugins.serve]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Literal, get_args

from attrs import Attribute, field, frozen
from attrs.validators import in_, instance_of

from locus.core import FrozenDict
from locus.core.errors import ConfigError
from locus.plugins import Secret
from locus_kit.validators import integer, not_blank, number, optional, strings, to_tuple

__all__ = ["USER", "OnDisconnect", "ServeSettings", "is_loopback"]

#: What becomes of a run whose client has left: it is cancelled, or it goes on.
OnDisconnect = Literal["cancel", "keep"]

#: The name of a user. It is the first part of the names of the user's threads, so it has no slash.
USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

#: Characters of the shortest token that is accepted: 32 hexadecimal digits are 128 bits.
_SHORTEST = 32


def _to_secrets(value: Mapping[str, str | Secret]) -> FrozenDict[str, Secret]:
    # A token that was pasted into the file is as secret as one that was not.
    return FrozenDict({name: each if isinstance(each, Secret) else Secret(each) for name, each in value.items()})


def _check_tokens(_: object, attribute: Attribute[Any], value: Mapping[str, Secret]) -> None:
    seen: dict[str, str] = {}
    for user, secret in value.items():
        if not USER.fullmatch(user):
            raise ValueError(
                f"the name of a user must have 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or a "
                f"digit, got {user!r:.80}"
            )
        token = secret.reveal()
        if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(
                f"the token of {user!r} must have at least {_SHORTEST} printable ASCII characters and no space; make "
                "one with: python -c 'import secrets; print(secrets.token_hex(32))'"
            )
        if token in seen:
            raise ValueError(f"the users {seen[token]!r} and {user!r} have the same token; give each user its own")
        seen[token] = user


@frozen(kw_only=True)
class ServeSettings:
    """Where the agent is served, to whom, and how much of it.

    Args:
        host: the address to listen on. Beyond this machine's loopback address it needs ``tokens``.
        port: the port; 0 = a free one.
        tokens: the bearer token of each user, as text, a `Secret` or ``{ env = "NAME" }``; empty = everybody who
            reaches the address is the user ``"local"``.
        hosts: names under which the server is reached, besides those of the loopback address; for example behind a
            proxy. A request whose ``Host`` is another one is refused on loopback, or where any are named.
        public_url: the address that other agents read in the agent's card; ``""`` = the one of their request.
        max_runs: how many runs at once; a request beyond is answered with 503.
        max_requests: how many requests at once, open event streams included; a request beyond is answered with 503.
        max_body_bytes: how long the body of a request may be.
        user_max_runs: how many runs of one user at once; a request beyond is answered with 429.
        user_tokens_a_day: how many tokens the runs of one user may use from midnight to midnight UTC, counted from the
            journals; None = any number. Model calls under way when it is reached still end.
        user_dollars_a_day: the same for dollars, where prices are known.
        on_disconnect: what becomes of a run whose client leaves before its end, where the request does not say:
            ``"keep"`` or ``"cancel"``.
        drain: seconds that runs under way get to end when the server leaves; then they yield, stay open on
            the journal, and go on with the next server.
        max_attempts: after so many attempts that died in one place a run is set aside.
        ping: seconds between two comments on an event stream that has nothing to say.
    """

    host: str = field(default="127.0.0.1", validator=not_blank)
    port: int = field(default=8000, validator=integer(0, 65_535))
    tokens: Mapping[str, Secret] = field(
        factory=FrozenDict, converter=_to_secrets, validator=_check_tokens, repr=lambda tokens: repr(sorted(tokens))
    )
    hosts: tuple[str, ...] = field(default=(), converter=to_tuple, validator=strings)
    public_url: str = field(default="", validator=instance_of(str))
    max_runs: int = field(default=64, validator=integer(1))
    max_requests: int = field(default=1000, validator=integer(1))
    max_body_bytes: int = field(default=1_000_000, validator=integer(1))
    user_max_runs: int = field(default=16, validator=integer(1))
    user_tokens_a_day: int | None = field(default=None, validator=optional(integer(1)))
    user_dollars_a_day: float | None = field(default=None, validator=optional(number(above=0)))
    on_disconnect: OnDisconnect = field(default="keep", validator=in_(get_args(OnDisconnect)))
    drain: float = field(default=30.0, validator=number(0))
    max_attempts: int = field(default=5, validator=integer(1))
    ping: float = field(default=15.0, validator=number(above=0))

    def check_bind(self) -> None:
        """Refuse to serve other machines without tokens.

        Raises:
            ConfigError: the host is not a loopback address, and ``tokens`` is empty.
        """
        if not self.tokens and not is_loopback(self.host):
            raise ConfigError(
                f"host {self.host!r} lets other machines reach the agent, and no tokens are set to know its users "
                'by; add [plugins.serve.tokens] with NAME = { env = "TOKEN_OF_NAME" }, or listen on 127.0.0.1'
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
