"""The tables, and how those of an older version become those of this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import asyncpg

from locus_plugin_postgres.address import Address
from locus_plugin_postgres.errors import PostgresTooOld, SchemaForeign, SchemaTooNew

__all__ = ["MIGRATIONS", "OLDEST_SERVER", "VERSION", "in_schema", "settle"]

#: The version of these tables, the newest in the table `version`.
VERSION = 1

#: The oldest major version of PostgreSQL that can be used: the oldest that is still maintained.
OLDEST_SERVER = 14

# What users name is bytea: a text of PostgreSQL holds neither NUL nor half of a surrogate pair. A row of `threads`
# changes with each append, so it has room for its next version beside it, and no index on what changes then: such an
# update touches one page. Bodies are compressed before they get here.
_TABLES = """
CREATE TABLE {s}.version (
    version  integer PRIMARY KEY,
    since    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE {s}.workers (             -- one open store of one process
    id       text PRIMARY KEY,
    place    text NOT NULL,            -- host and process, for people
    renewed  timestamptz NOT NULL      -- when it last said that it lives
);
CREATE TABLE {s}.threads (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        bytea NOT NULL UNIQUE,  -- SHA-256 of the name, which may be too long for an index
    name       bytea NOT NULL,
    born       text NOT NULL,          -- by the call that made it
    token      text NOT NULL,          -- of the claim that holds it, '' when nobody does
    worker     text,                   -- whose claim that is
    holder     bytea,                  -- what that worker calls itself
    since      timestamptz,            -- of the claim
    lease      interval,               -- how long it is good without being renewed
    abandoned  boolean NOT NULL,       -- whether the claim before it was not given back
    not_before timestamptz,            -- when the run wants to go on
    created    timestamptz NOT NULL,
    updated    timestamptz NOT NULL,
    parent     bigint,                 -- the thread that it was forked from
    head       bigint NOT NULL,        -- number of its newest entry
    tip        text NOT NULL,          -- writer of that
    status     text NOT NULL,          -- of its newest run there
    node       bytea NOT NULL,         -- where that goes on
    about      bytea NOT NULL          -- title, model, agent and metadata, a JSON object
) WITH (fillfactor = 70);
CREATE INDEX threads_due ON {s}.threads (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX threads_parent ON {s}.threads (parent) WHERE parent IS NOT NULL;
CREATE INDEX threads_worker ON {s}.threads (worker) WHERE worker IS NOT NULL;
CREATE TABLE {s}.entries (             -- one append
    thread   bigint NOT NULL,
    last     bigint NOT NULL,          -- number of the last entry in it
    first    bigint NOT NULL,          -- of the first
    writer   text NOT NULL,            -- token of the claim
    parent   text NOT NULL,            -- writer of the entry before
    at       timestamptz NOT NULL,
    status   text NOT NULL,            -- of the newest run from here on
    node     bytea NOT NULL,           -- where that goes on
    body     bytea NOT NULL,           -- see locus_kit.packing
    PRIMARY KEY (thread, last)
);
ALTER TABLE {s}.entries ALTER body SET STORAGE EXTERNAL;
CREATE TABLE {s}.snapshots (
    thread   bigint NOT NULL,
    at       bigint NOT NULL,          -- number of the entry whose state it is
    before   bigint NOT NULL,          -- of the snapshot before, 0 for the first
    body     bytea NOT NULL,           -- what became of the state since that
    PRIMARY KEY (thread, at)
);
ALTER TABLE {s}.snapshots ALTER body SET STORAGE EXTERNAL;
CREATE TABLE {s}.queue (               -- a thread that was submitted
    thread    bigint PRIMARY KEY,
    queue     bytea NOT NULL,
    priority  smallint NOT NULL,
    due       timestamptz,             -- from when it may be offered; NULL = when it is signalled
    offer     text NOT NULL,           -- token of the offer under way, '' without one
    ended     text NOT NULL,           -- token of the offer that was ended last
    delivered integer NOT NULL,        -- how often it was offered in a row
    signalled boolean NOT NULL         -- whether a signal came since it was offered
) WITH (fillfactor = 70);
CREATE INDEX queue_due ON {s}.queue (queue, priority, due) WHERE due IS NOT NULL;
CREATE INDEX queue_offer ON {s}.queue (offer) WHERE offer <> '';
CREATE TABLE {s}.signals (
    thread bigint NOT NULL,
    n      bigint NOT NULL,            -- from 1
    key    bytea NOT NULL,             -- SHA-256 of its id
    id     bytea NOT NULL,
    body   bytea,                      -- NULL when it was forgotten
    PRIMARY KEY (thread, n),
    UNIQUE (thread, key)
)
"""

#: From a version to the statements that make the next one of it.
MIGRATIONS: Mapping[int, Sequence[str]] = MappingProxyType({})

#: Whether a live worker holds a thread ``t``. A lease counts from the claim, from the last renewal, and from the start
#: of the server: while that was away no worker could renew anything. The claim counts because the row of a worker may
#: be younger than what this statement sees, which the row of the thread that it locks never is.
_ALIVE = """
(t.token <> '' AND clock_timestamp() < t.lease + greatest(
    t.since, (SELECT w.renewed FROM {s}.workers w WHERE w.id = t.worker), pg_postmaster_start_time()))
"""

#: So that of several stores one makes the tables: "LOCU".
_LOCK = 0x4C4F4355


@lru_cache(maxsize=256)
def in_schema(statement: str, schema: str) -> str:
    """A statement with the name of the schema for ``{s}``, and for ``{alive}`` whether a live worker holds ``t``."""
    return statement.replace("{alive}", _ALIVE).replace("{s}", f'"{schema}"')


async def settle(db: asyncpg.Connection, address: Address, schema: str) -> None:
    """Insist that the tables are those of this version: make them, migrate them, or refuse them.

    Raises:
        PostgresTooOld: the server is too old.
        SchemaTooNew: the tables are of a newer version.
        SchemaForeign: the schema holds something else.
        asyncpg.PostgresError: anything else.
    """
    major = db.get_server_version().major
    if major < OLDEST_SERVER:
        raise PostgresTooOld(address.shown, major, OLDEST_SERVER)
    if await _version(db, address, schema) == VERSION:
        return
    async with db.transaction():
        await db.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = await _version(db, address, schema)  # another store may have been faster
        if found == 0:
            await _make(db, address, schema)
        for version in range(found or VERSION, VERSION):
            for statement in MIGRATIONS[version]:
                await db.execute(in_schema(statement, schema))
        if found != VERSION:
            await db.execute(in_schema("INSERT INTO {s}.version (version) VALUES ($1)", schema), VERSION)


async def _version(db: asyncpg.Connection, address: Address, schema: str) -> int:
    """The version of the tables; 0 where they are missing."""
    known = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = $1 AND relname = $2"
    if await db.fetchval(known, schema, "version") is None:
        return 0
    found = await db.fetchval(in_schema("SELECT max(version) FROM {s}.version", schema))
    if not isinstance(found, int):
        raise SchemaForeign(address.shown, f"the schema {schema!r} holds a table 'version' of another program")
    if found > VERSION:
        raise SchemaTooNew(address.shown, schema, found, VERSION)
    return found


async def _make(db: asyncpg.Connection, address: Address, schema: str) -> None:
    exists = await db.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)
    taken = "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = $1 LIMIT 1"
    other = await db.fetchval(taken, schema)
    if other is not None:
        raise SchemaForeign(
            address.shown,
            f"the schema {schema!r} holds tables of another program, such as {other!r}; set another schema "
            "(nothing was changed)",
        )
    if not exists:
        await db.execute(in_schema("CREATE SCHEMA {s}", schema))
    await db.execute(in_schema(_TABLES, schema))
