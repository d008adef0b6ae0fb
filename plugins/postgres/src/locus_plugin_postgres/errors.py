"""What can be wrong with the server. Nothing is ever half-written: an append is stored whole, or not at all.

StoreError                     (of the kernel)
├── PostgresProblem            something is wrong with the server (`.address`)
│   ├── PostgresUnreachable    it does not answer, or not any more
│   ├── PostgresDenied         it refuses this user
│   ├── PostgresReadOnly       it takes no writes: it is a replica
│   ├── PostgresFull           its disk has no room
│   ├── PostgresTooOld         its version is too old (`.found`, `.supported`)
│   ├── SchemaTooNew           a newer version of this plugin made the tables (`.found`, `.supported`)
│   ├── SchemaForeign          the schema holds tables of another program
│   └── PostgresFailed         anything else that it reports
├── EntryDamaged               what it has of a thread is not what was written (`.thread_id`, `.n`)
└── StoreClosed                the store was closed

No message holds a password, and no error of the driver is chained where it could hold one.
"""

from __future__ import annotations

from locus.core.errors import JournalDamaged, StoreError

__all__ = [
    "EntryDamaged",
    "PostgresDenied",
    "PostgresFailed",
    "PostgresFull",
    "PostgresProblem",
    "PostgresReadOnly",
    "PostgresTooOld",
    "PostgresUnreachable",
    "SchemaForeign",
    "SchemaTooNew",
    "StoreClosed",
]


class PostgresProblem(StoreError):
    """Something is wrong with the server.

    Args:
        address: host, port and database.
        message: what happened and what to do.
    """

    def __init__(self, address: str, message: str) -> None:
        self.address = address
        super().__init__(f"{address}: {message}", store="postgres")


class PostgresUnreachable(PostgresProblem):
    """The server does not answer, or not any more.

    Args:
        address: host, port and database.
        message: what happened and what to do.
        is_unknown: whether what was asked may have been done nevertheless.
    """

    def __init__(self, address: str, message: str, *, is_unknown: bool = False) -> None:
        self.is_unknown = is_unknown
        super().__init__(address, message)


class PostgresDenied(PostgresProblem):
    """The server refuses this user, or what this user asks for."""


class PostgresReadOnly(PostgresProblem):
    """The server takes no writes."""


class PostgresFull(PostgresProblem):
    """The disk of the server has no room."""


class PostgresTooOld(PostgresProblem):
    """The version of the server is older than this plugin needs.

    Args:
        address: host, port and database.
        found: its major version.
        supported: the oldest major version that can be used.
    """

    def __init__(self, address: str, found: int, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(address, f"it is PostgreSQL {found}, and {supported} or later is needed; upgrade the server")


class SchemaTooNew(PostgresProblem):
    """A newer version of this plugin made the tables, or migrated them; they were not touched.

    Args:
        address: host, port and database.
        schema: that holds them.
        found: their version.
        supported: the newest version that this installation reads.
    """

    def __init__(self, address: str, schema: str, found: int, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(
            address,
            f"the schema {schema!r} has version {found}, this installation reads up to {supported}; "
            "upgrade locus-plugin-postgres to use it (nothing was changed)",
        )


class SchemaForeign(PostgresProblem):
    """The schema holds tables of another program; they were not touched."""


class PostgresFailed(PostgresProblem):
    """The server reports an error that nothing else here describes."""


class EntryDamaged(JournalDamaged):
    """What the server has of a thread is not what was written to it.

    Args:
        thread_id: the thread.
        n: number of the first damaged entry.
        what: what is wrong with it.
    """

    def __init__(self, thread_id: str, n: int, what: str) -> None:
        super().__init__(
            f"entry {n} of thread {thread_id!r} {what}; restore the database from a backup, or delete the thread",
            thread_id=thread_id,
            n=n,
            store="postgres",
        )


class StoreClosed(StoreError):
    """The store was closed; make another one."""
