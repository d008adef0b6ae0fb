"""Where files go that can be made again."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder for what can be made again: ``LOCUS_CACHE``, else where the platform keeps such files."""
    if chosen := environ.get("LOCUS_CACHE"):
        return Path(chosen).expanduser()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "locus" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "locus"
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "locus"
