"""What the plugin offers, readable without importing sqlite3."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="sqlite",
    api=(1, 0),
    summary="Journals in an SQLite file: crash-proof, shared by threads and processes.",
    settings="locus_plugin_sqlite.settings:SqliteSettings",
    provides={"checkpointer": "locus_plugin_sqlite.store:make"},
    suffixes=(".db", ".sqlite", ".sqlite3"),
)
