"""Journals in an SQLite file: one file for many agent threads and several processes.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_sqlite.errors import (
        DiskFull,
        EntryDamaged,
        FileDamaged,
        FileFailed,
        FileForeign,
        FileGone,
        FileLocked,
        FileProblem,
        FileReadOnly,
        FileTooNew,
        FileTooOld,
        FileUnusable,
        StoreClosed,
    )
    from locus_plugin_sqlite.maintenance import Damage, Salvaged, Verified
    from locus_plugin_sqlite.settings import SqliteSettings
    from locus_plugin_sqlite.store import SqliteStore

__all__ = [
    "Damage",
    "DiskFull",
    "EntryDamaged",
    "FileDamaged",
    "FileFailed",
    "FileForeign",
    "FileGone",
    "FileLocked",
    "FileProblem",
    "FileReadOnly",
    "FileTooNew",
    "FileTooOld",
    "FileUnusable",
    "Salvaged",
    "SqliteSettings",
    "SqliteStore",
    "StoreClosed",
    "Verified",
]

_ELSEWHERE = {
    "Damage": "locus_plugin_sqlite.maintenance",
    "Salvaged": "locus_plugin_sqlite.maintenance",
    "Verified": "locus_plugin_sqlite.maintenance",
    "SqliteSettings": "locus_plugin_sqlite.settings",
    "SqliteStore": "locus_plugin_sqlite.store",
}

__getattr__, __dir__ = exports(__name__, {name: _ELSEWHERE.get(name, "locus_plugin_sqlite.errors") for name in __all__})
