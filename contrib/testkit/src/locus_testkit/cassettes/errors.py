"""The errors of a replay: each says what was recorded, what was asked, and how to record again."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CassetteError", "CassetteExhausted", "CassetteMismatch", "CassetteMissing", "CassetteUnused"]


class CassetteError(AssertionError):
    """A cassette cannot be used. Neither an `OSError` nor a `ModelError`, so that nothing retries it.

    Args:
        path: of the cassette.
        what: what happened, and what to do.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        super().__init__(f"{path}: {what}")


class CassetteMissing(CassetteError):
    """The cassette does not exist, and nothing may be recorded."""


class CassetteMismatch(CassetteError):
    """A request was not recorded; the message shows the difference to the nearest one."""


class CassetteExhausted(CassetteError):
    """A request came when everything that was recorded had been replayed."""


class CassetteUnused(CassetteError):
    """A test ended and something that was recorded was not asked for."""
