"""What can be wrong between a store and its server. Nothing is ever half-written: an append is one message.

StoreError                  (of the kernel)
├── NatsProblem             something is wrong with the server or its streams (`.server`)
│   ├── NatsUnreachable     no answer, for longer than `patience`
│   │   └── NatsRefused     the server does not accept the credentials, or allows too little
│   ├── StreamFull          the server has no room, or a limit of the stream is reached
│   ├── StreamMismatch      a stream of that name exists and is another one
│   ├── NotSynced           the server does not sync each write, which the settings promise
│   └── TooOld              the server is too old, or has no JetStream (`.found`)
└── StoreClosed             the store was closed
"""

from __future__ import annotations

from locus.core.errors import StoreError

__all__ = [
    "NatsProblem",
    "NatsRefused",
    "NatsUnreachable",
    "NotSynced",
    "StoreClosed",
    "StreamFull",
    "StreamMismatch",
    "TooOld",
]


class NatsProblem(StoreError):
    """Something is wrong with the server or its streams.

    Args:
        server: its address, without credentials.
        message: what happened and what to do.
    """

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(f"{server}: {message}", store="nats")


class NatsUnreachable(NatsProblem):
    """The server did not answer in time."""


class NatsRefused(NatsUnreachable):
    """The server does not accept the credentials, or does not allow what is asked."""


class StreamFull(NatsProblem):
    """The server has no room for more."""


class StreamMismatch(NatsProblem):
    """A stream of that name has another configuration; it was not touched."""


class NotSynced(NatsProblem):
    """The settings promise that the server syncs each write, and its monitoring endpoint says that it does not."""


class TooOld(NatsProblem):
    """The server lacks what the store needs.

    Args:
        server: its address.
        found: its version.
        message: what is missing and what to do.
    """

    def __init__(self, server: str, found: str, message: str) -> None:
        self.found = found
        super().__init__(server, message)


class StoreClosed(StoreError):
    """The store was closed."""
