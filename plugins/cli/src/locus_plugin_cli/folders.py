"""In which folder a conversation had its newest turn, as its thread remembers it."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["FOLDER", "folder_mark"]

#: The key in a thread's metadata.
FOLDER = "locus.cli.folder"

#: Characters of a text that a store lists.
_LISTED = 200


def folder_mark(folder: Path) -> str:
    """A folder as threads have it: its path, or a digest where no listing has room for it."""
    path = str(folder.absolute())
    return path if len(path) <= _LISTED else hashlib.sha256(path.encode()).hexdigest()
