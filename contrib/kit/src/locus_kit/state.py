"""The folder for data that a user's programs keep between runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ENV", "state_folder"]

#: Names another folder.
ENV = "LOCUS_STATE"


def state_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder for persistent data: ``LOCUS_STATE``, else where the platform keeps such files.

    Raises:
        RuntimeError: the user's home directory is unknown.
    """
    if chosen := environ.get(ENV):
        return Path(chosen).expanduser().absolute()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "locus" / "State"
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "locus"
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "locus"
