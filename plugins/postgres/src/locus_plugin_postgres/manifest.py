"""What the plugin offers, readable without importing asyncpg. Addresses begin with either name."""

from __future__ import annotations

from locus.plugin import Plugin


def _manifest(name: str) -> Plugin:
    return Plugin(
        name=name,
        api=(1, 0),
        summary="Journals in PostgreSQL: shared by workers on many machines.",
        settings="locus_plugin_postgres.settings:PostgresSettings",
        provides={"checkpointer": "locus_plugin_postgres.store:make"},
    )


plugin = _manifest("postgres")
postgresql = _manifest("postgresql")
