"""Workers on one file are frozen, thawed and killed."""

from __future__ import annotations

from .takeover import Takeover


class TestTakeover(Takeover):
    """There is only the file, which nothing restarts."""
