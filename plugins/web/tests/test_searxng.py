"""The promises of any search engine."""

from __future__ import annotations

from collections.abc import Sequence

from locus_plugin_web import SearchFailed, SearxngEngine
from locus_testkit import SearchEngineContract, SearchResult
from locus_testkit.hostile import Answer


class TestSearxng(SearchEngineContract):
    error = SearchFailed

    def make_engine(self, base_url: str) -> SearxngEngine:
        return SearxngEngine(base_url)

    def make_hasty_engine(self, base_url: str) -> SearxngEngine:
        return SearxngEngine(base_url, timeout=0.3)

    def answer(self, results: Sequence[SearchResult]) -> Answer:
        return Answer.of({"results": [{"url": r.url, "title": r.title, "content": r.snippet} for r in results]})
