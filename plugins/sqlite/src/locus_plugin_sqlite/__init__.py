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

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_sqlite.errors": (
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
            "StoreClosed",
        ),
        "locus_plugin_sqlite.maintenance": ("Damage", "Salvaged", "Verified"),
        "locus_plugin_sqlite.settings": ("SqliteSettings",),
        "locus_plugin_sqlite.store": ("SqliteStore",),
    },
)
