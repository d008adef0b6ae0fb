"""What can be wrong with a catalog."""

from __future__ import annotations

from locus.core.errors import LocusError

__all__ = ["CatalogError"]


class CatalogError(LocusError):
    """A catalog cannot be read or written; the message names the file and what to do."""
