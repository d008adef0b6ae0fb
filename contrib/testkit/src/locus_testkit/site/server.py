"""`LocalSite`: the server, and what it answers at which path."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from html import escape
from types import TracebackType
from urllib.parse import parse_qsl, unquote

from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest
from locus_testkit.site.elements import element_pages
from locus_testkit.site.hostile import PREFIX, answer_hostile
from locus_testkit.site.pages import Page, render, render_list
from locus_testkit.site.search import SearchIndex

__all__ = ["LocalSite"]

_ROBOTS = """\
# What may be read by programs.
User-agent: *
Disallow: /private/
Allow: /private/open
Disallow: /*.tmp$
"""
_PRIVATE = (
    Page(path="/private/diary", title="A diary", body="<p>Not for programs.</p>"),
    Page(path="/private/open", title="An open page", body="<p>For everyone.</p>"),
    Page(path="/notes.tmp", title="Notes", body="<p>Not for programs.</p>"),
)
#: Bodies of this many bytes are packed for clients that can unpack them.
_PACKED = 2_000


class LocalSite(LocalServer):
    """A site on a free port of 127.0.0.1; used in a ``with``.

    It has the pages, a home page, ``/about``, ``/search`` with SearXNG's API (``format=json``), ``/robots.txt``, pages
    below ``/private/`` that it forbids to programs, redirects from ``/old/NAME`` to ``/elements/NAME`` and from
    ``/elements`` to ``/elements/``, ``/plain.txt``, ``/data.json``, and the pages of `hostile_paths`. What is to be
    answered once is queued by `LocalServer.then`.

    Args:
        pages: what it has; None = a page for each chemical element and a table of all.
        robots: what ``/robots.txt`` says; None = it forbids ``/private/``, but not ``/private/open``.
    """

    def __init__(self, pages: Iterable[Page] | None = None, *, robots: str | None = None) -> None:
        super().__init__(self._respond)
        #: All of them, also the home page.
        self.pages = tuple(element_pages() if pages is None else pages)
        self.robots = _ROBOTS if robots is None else robots
        links = [(each.path, each.title) for each in self.pages]
        home = Page(path="/", title="Home", body=f"<p>Welcome.</p>{render_list(links)}")
        about = Page(
            path="/about", title="About", body="<p>A site for tests, with a page for each chemical element.</p>"
        )
        self._by_path = {each.path: each for each in (home, about, *_PRIVATE, *self.pages)}

    @property
    def address(self) -> str:
        """Host and port: ``"127.0.0.1:PORT"``."""
        return f"127.0.0.1:{self.port}"

    def at(self, path: str) -> str:
        """The URL of a path."""
        return self.url + path

    @property
    def paths(self) -> list[str]:
        """The paths of all requests, in order, with their queries."""
        return [each.path for each in self.received]

    def __enter__(self) -> LocalSite:
        self._index = SearchIndex(self.pages)
        super().__enter__()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(exc_type, exc, traceback)
        self._index.close()

    # -- in its thread ----------------------------------------------------------------------------

    def _respond(self, request: ReceivedRequest) -> Answer:
        path, _, query = request.path.partition("?")
        if path == "/search":
            return self._index.answer(dict(parse_qsl(query)), self.url)
        if path == "/robots.txt":
            return Answer(media_type="text/plain", body=self.robots)
        if path == "/plain.txt":
            return Answer(media_type="text/plain; charset=utf-8", body="Plain words.\n<b>Not bold.</b>\n")
        if path == "/data.json":
            return Answer.of({"metal": "gallium", "melting_point": 302.91})
        if path == "/elements":
            return Answer(status=301, media_type="text/html", headers={"location": "/elements/"})
        if path.startswith("/old/"):
            return Answer(status=301, media_type="text/html", headers={"location": f"../elements/{path[5:]}"})
        if path.startswith(PREFIX) and (answer := answer_hostile(path.removeprefix(PREFIX), query)) is not None:
            return answer
        page = self._by_path.get(unquote(path))
        if page is None:
            body = render(Page(path=path, title="Not found", body=f"<p>There is nothing at {escape(path)}.</p>"))
            return Answer(status=404, media_type="text/html; charset=utf-8", body=body)
        return _pack(render(page).encode(), request)


def _pack(body: bytes, request: ReceivedRequest) -> Answer:
    answer = Answer(media_type="text/html; charset=utf-8", body=body)
    if len(body) < _PACKED or "gzip" not in request.headers.get("accept-encoding", ""):
        return answer
    return answer.with_fields(headers={"content-encoding": "gzip"}, body=gzip.compress(body, mtime=0))
