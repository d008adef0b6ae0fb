"""Journals in PostgreSQL: one database for many agent threads and workers on many machines.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_postgres.errors import (
        EntryDamaged,
        PostgresDenied,
        PostgresFailed,
        PostgresFull,
        PostgresProblem,
        PostgresReadOnly,
        PostgresTooOld,
        PostgresUnreachable,
        SchemaForeign,
        SchemaTooNew,
        StoreClosed,
    )
    from locus_plugin_postgres.settings import PostgresSettings
    from locus_plugin_postgres.store import PostgresStore

__all__ = [
    "EntryDamaged",
    "PostgresDenied",
    "PostgresFailed",
    "PostgresFull",
    "PostgresProblem",
    "PostgresReadOnly",
    "PostgresSettings",
    "PostgresStore",
    "PostgresTooOld",
    "PostgresUnreachable",
    "SchemaForeign",
    "SchemaTooNew",
    "StoreClosed",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_postgres.errors": (
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
        ),
        "locus_plugin_postgres.settings": ("PostgresSettings",),
        "locus_plugin_postgres.store": ("PostgresStore",),
    },
)
