"""What can go wrong with a page: the model reads it, and may try another one."""

from __future__ import annotations

from locus.core.errors import ToolError

__all__ = ["FetchFailed", "FetchRefused", "SearchFailed", "WebError"]


class WebError(ToolError):
    """A page or a search gave no result."""


class FetchRefused(WebError):
    """The page may not be fetched: by its address, by ``robots.txt``, or by what it is. Nothing of it was read."""


class FetchFailed(WebError):
    """The page could not be fetched: no connection, an error of the server, a broken or endless body."""


class SearchFailed(WebError):
    """The search engine gave no results that can be read."""
