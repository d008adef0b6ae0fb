"""What the plugin offers, readable without importing sqlite3."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="sqlite",
    api=(1, 0),
    summary="Journals and files in SQLite files: crash-proof, shared by threads and processes.",
    settings="locus_plugin_sqlite.settings:SqliteSettings",
    provides={"checkpointer": "locus_plugin_sqlite.store:make", "backend": "locus_plugin_sqlite.files:make"},
    suffixes=(".db", ".sqlite", ".sqlite3"),
)
