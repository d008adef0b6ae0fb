"""The site's search: an index by SQLite's FTS5, ranked by bm25, and answers in the JSON of SearXNG's API."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from locus_testkit.localserver import Answer
from locus_testkit.site.pages import Page

__all__ = ["SearchIndex"]

_WORD = re.compile(r"\w+")
#: Results on a page of them.
_RESULTS = 10


class SearchIndex:
    """Finds pages by their words; `close` it. It may be used by several threads.

    Args:
        pages: what is found.
    """

    def __init__(self, pages: Iterable[Page]) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE pages USING fts5 (path UNINDEXED, title, text, tokenize = 'porter')")
        self._db.executemany("INSERT INTO pages VALUES (?, ?, ?)", ((p.path, p.title, p.text) for p in pages))

    def close(self) -> None:
        """Forget everything."""
        self._db.close()

    def find(self, query: str, start: int = 0) -> list[tuple[str, str, str, float]]:
        """Path, title, snippet and score of the best pages; any of the words may be in them.

        Args:
            query: in words; what else is in it counts as a blank.
            start: how many to leave out.
        """
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        if not words:
            return []
        with self._lock:
            rows = self._db.execute(
                "SELECT path, title, snippet(pages, 2, '', '', ' ... ', 40), -bm25(pages, 0, 5, 1) AS score "
                "FROM pages WHERE pages MATCH ? ORDER BY score DESC, rowid LIMIT ? OFFSET ?",
                (words, _RESULTS, start),
            )
            return list(rows)

    def answer(self, parameters: Mapping[str, str], base: str) -> Answer:
        """What a SearXNG instance answers to ``/search``: https://docs.searxng.org/dev/search_api.html.

        Args:
            parameters: ``q``, ``format`` and ``pageno``.
            base: the site's address, for the addresses of results.
        """
        if parameters.get("format") != "json":  # instances refuse the formats that they do not offer
            return Answer(status=403, media_type="text/html", body="<h1>Forbidden</h1>")
        query = parameters.get("q", "")
        if not query.strip():
            return Answer.of({"error": "No query"}, status=400)
        page = parameters.get("pageno", "1")
        if not page.isdecimal() or int(page) < 1:
            return Answer(status=400, media_type="text/html", body="Bad Request: pageno")
        found = self.find(query, (int(page) - 1) * _RESULTS)
        return Answer.of(
            {
                "query": query,
                "number_of_results": 0,
                "results": [_result(i, base, *each) for i, each in enumerate(found, 1)],
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": [],
                "unresponsive_engines": [],
            }
        )


def _result(position: int, base: str, path: str, title: str, snippet: str, score: float) -> dict[str, Any]:
    url = base + path
    return {
        "url": url,
        "title": title,
        "content": snippet,
        "thumbnail": None,
        "engine": "local",
        "template": "default.html",
        "parsed_url": [*urlsplit(url), ""],
        "img_src": "",
        "priority": "",
        "engines": ["local"],
        "positions": [position],
        "score": score,
        "category": "general",
        "publishedDate": None,
    }
