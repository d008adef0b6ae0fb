"""`SearchEngine`: where `web_search` looks things up, and `SearxngEngine`, which asks an instance of SearXNG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import anyio
import httpx2
from attrs import frozen

from locus_kit.invisible import escape_invisible, remove_invisible
from locus_plugin_web.bodies import read_at_most
from locus_plugin_web.errors import SearchFailed
from locus_wire.encodings import ACCEPTED, unpack_within_bounds

__all__ = ["SearchEngine", "SearchHit", "SearxngEngine"]

_SCHEME = "searxng:"
_MAX_BYTES = 2_000_000
_TIMEOUT = 15.0
_LONGEST_QUERY = 500
_LONGEST_URL = 2_000


@frozen(kw_only=True)
class SearchHit:
    """A result of a search. All of it is text that anybody may have written.

    Args:
        url: http or https.
        title, snippet: one line each, maybe ``""``.
    """

    url: str
    title: str = ""
    snippet: str = ""


@runtime_checkable
class SearchEngine(Protocol):
    """Finds pages on the web. `locus_testkit.SearchEngineContract` proves one."""

    async def search(self, query: str, limit: int) -> Sequence[SearchHit]:
        """The best pages for a query, the best first; empty if nothing was found.

        Args:
            query: in words, not blank; nothing in it may change where the request goes.
            limit: the most results, at least 1.

        Raises:
            SearchFailed: there was no answer, or none that can be read.
        """
        ...


class SearxngEngine:
    """An instance of SearXNG, asked by its JSON API: https://docs.searxng.org/dev/search_api.html.

    Its settings must offer that format: ``search: formats: [html, json]``. The address is the user's choice and may be
    a private one; what it redirects to is not asked.

    Args:
        url: of the instance, as in ``"https://search.example"``, with a path if it has one.
        timeout: seconds that an answer may take.

    Raises:
        ValueError: it is not a whole http or https URL without user, query and fragment.
    """

    def __init__(self, url: str, *, timeout: float = _TIMEOUT) -> None:
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, TypeError) as e:
            raise ValueError(f"expected the URL of a SearXNG instance, got {url!r:.200}: {e}") from None
        if (
            parsed.scheme not in ("http", "https")
            or not parsed.host
            or parsed.userinfo
            or parsed.query
            or parsed.fragment
        ):
            # Its user and password are not shown.
            shown = parsed.copy_with(userinfo=b"")
            raise ValueError(
                "expected the URL of a SearXNG instance, as in 'https://search.example', without a user, a query and a "
                f"fragment, got {str(shown)!r:.200}"
            )
        #: Of the instance, without a slash at its end.
        self.url = str(parsed).rstrip("/")
        self._timeout = timeout

    @classmethod
    def from_text(cls, text: str) -> SearxngEngine:
        """The engine that a setting names: ``"searxng:https://search.example"``.

        Raises:
            ValueError: it names none.
        """
        if not text.startswith(_SCHEME):
            raise ValueError(f"search must be 'searxng:' and the URL of an instance, got {text!r:.200}")
        return cls(text.removeprefix(_SCHEME))

    def __repr__(self) -> str:
        return f"SearxngEngine({self.url!r})"

    async def search(self, query: str, limit: int) -> Sequence[SearchHit]:
        """The best pages for a query.

        Raises:
            SearchFailed: the instance cannot be reached, or does not answer as its API says.
        """
        parameters = {"q": query[:_LONGEST_QUERY], "format": "json"}
        try:
            with anyio.fail_after(self._timeout):
                data = await self._ask(parameters)
        except TimeoutError:
            raise SearchFailed(f"the search engine took longer than {self._timeout:g} seconds") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as e:
            said = escape_invisible(str(e)[:200])
            raise SearchFailed(f"the search engine cannot be reached: {type(e).__name__}: {said}") from None
        return _hits(data, limit)

    async def _ask(self, parameters: dict[str, str]) -> Any:
        async with (
            httpx2.AsyncClient(
                trust_env=False,
                timeout=self._timeout,
                headers={"user-agent": "locus", **ACCEPTED},
                follow_redirects=False,
            ) as http,
            http.stream("GET", f"{self.url}/search", params=parameters) as response,
        ):
            if response.status_code == 403:
                raise SearchFailed("the search engine refuses (status 403); its settings may not offer the format json")
            if response.status_code != 200:
                raise SearchFailed(f"the search engine answered with status {response.status_code}")
            await unpack_within_bounds(response, free=_MAX_BYTES)
            body = await read_at_most(response, _MAX_BYTES)
        if body is None:
            raise SearchFailed(f"the answer of the search engine is larger than {_MAX_BYTES:,} bytes")
        try:
            return json.loads(body.data)
        except (ValueError, RecursionError):
            raise SearchFailed("the answer of the search engine is not JSON") from None


def _hits(data: Any, limit: int) -> list[SearchHit]:
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise SearchFailed("the answer of the search engine has no list of results")
    hits: dict[str, SearchHit] = {}
    for each in results:
        if len(hits) >= limit:
            break
        url = each.get("url") if isinstance(each, dict) else None
        if isinstance(url, str) and _is_plain(url):
            hits.setdefault(
                url, SearchHit(url=url, title=_line(each.get("title"), 200), snippet=_line(each.get("content"), 500))
            )
    return list(hits.values())


def _is_plain(url: str) -> bool:
    if len(url) > _LONGEST_URL or remove_invisible(url) != url or any(each.isspace() for each in url):
        return False
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host) and not parsed.userinfo


def _line(text: object, most: int) -> str:
    """One visible line; an engine may leave a field out, or give something else."""
    if not isinstance(text, str):
        return ""
    line = " ".join(remove_invisible(text[: most * 4]).split())
    return line if len(line) <= most else f"{line[: most - 4]} ..."
