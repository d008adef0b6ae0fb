"""`Fetcher`: gets a page within bounds of time, size and place."""

from __future__ import annotations

import ssl
from collections.abc import MutableMapping
from functools import partial

import anyio
import anyio.to_thread
import httpx2
from attrs import field, frozen

from locus_kit.invisible import escape_invisible, remove_invisible
from locus_kit.pdf import PdfBounds, PdfError, PdfMissing, is_pdf, read_pdf
from locus_plugin_web.addresses import AddressGuard, Resolve, Target
from locus_plugin_web.bodies import read_at_most
from locus_plugin_web.charsets import decode_body
from locus_plugin_web.errors import FetchFailed, FetchRefused
from locus_plugin_web.markdown import Text, read_page
from locus_plugin_web.robots import ALLOW_ALL, FORBID_ALL, MAX_BYTES, Robots, parse_robots
from locus_plugin_web.settings import WebSettings
from locus_plugin_web.transport import GuardedTransport, tls_context
from locus_wire.encodings import ACCEPTED, unpack_within_bounds

__all__ = ["Fetcher", "Page", "Visit"]

PRODUCT = "locus"
_REDIRECTS = 5
#: Bytes that a page may unpack to however small it came; above that, at most a hundred times of what came.
_FREE = 1_000_000
#: Seconds to make a connection.
_CONNECT = 8.0
_ACCEPT = (
    "text/html, application/xhtml+xml, text/markdown, text/plain, application/json;q=0.9, application/pdf;q=0.8, "
    "text/*;q=0.5"
)
_HTML = frozenset(("text/html", "application/xhtml+xml"))
_PDF = "application/pdf"
#: The part of the time for a page that reading a PDF may take.
_PDF_SHARE = 0.5
_PLAIN = frozenset(("application/json", "application/xml", "application/rss+xml", "application/atom+xml"))
_SHOWN = 200
#: Bytes at the beginning of a page that show whether it is text or binary data.
_HEAD = 4_096


@frozen(kw_only=True)
class Page:
    """A page as a model reads it.

    Args:
        url: where it was in the end.
        title: one line, or ``""``.
        text: Markdown, or what the page says where it is not HTML.
        is_whole: whether nothing was left out for its size, and none of it was lost on the way.
    """

    url: str
    title: str
    text: str
    is_whole: bool = True


@frozen
class Visit:
    """What one run remembers: of sites, their rules; of pages, the last few, so that a long one is fetched once.

    Args:
        robots: by origin.
        pages: by the URL that was asked for.
    """

    robots: MutableMapping[str, Robots] = field(factory=dict)
    pages: MutableMapping[str, Page] = field(factory=dict)


@frozen(kw_only=True)
class _Body:
    target: Target
    media_type: str
    charset: str | None
    data: bytes
    is_whole: bool = True


class Fetcher:
    """Fetches pages from public addresses; a handle, not a value.

    Args:
        settings: what may be fetched, and how much; None = the defaults.
        resolve: gives the addresses of a name; None = the system's resolver.
        tls: the certificates to trust; None = the usual ones.
    """

    #: Pages that a run remembers.
    remembered = 4

    def __init__(
        self, settings: WebSettings | None = None, *, resolve: Resolve | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.settings = WebSettings() if settings is None else settings
        self._guard = AddressGuard(self.settings.allow, resolve)
        self._tls = tls

    async def fetch(self, url: str, visit: Visit | None = None) -> Page:
        """Fetch a page, or remember it.

        Args:
            url: http or https.
            visit: what was seen before; None = nothing.

        Raises:
            FetchRefused: it may not be fetched.
            FetchFailed: it could not be.
        """
        visit = Visit() if visit is None else visit
        known = visit.pages.get(url)
        if known is not None:
            return known
        try:
            with anyio.fail_after(self.settings.timeout):
                body = await self._follow(url, visit)
                if body.media_type == _PDF or (not body.media_type and is_pdf(body.data)):
                    page = await self._read_pdf(body)
                else:
                    page = await anyio.to_thread.run_sync(partial(_read, body), abandon_on_cancel=True)
        except TimeoutError:
            raise FetchFailed(f"the page took longer than {self.settings.timeout:g} seconds") from None
        while len(visit.pages) >= self.remembered:
            del visit.pages[next(iter(visit.pages))]
        visit.pages[url] = page
        return page

    async def _follow(self, url: str, visit: Visit) -> _Body:
        for _ in range(_REDIRECTS + 1):
            target = self._guard.check(url)
            if self.settings.robots:
                robots = await self._robots(target, visit)
                if not robots.allows(target.url.raw_path.decode("ascii")):
                    raise FetchRefused(f"the robots.txt of {target.host} does not allow programs to read this page")
            found = await self._get(target, self.settings.max_bytes)
            if isinstance(found, _Body):
                return found
            url = found
        raise FetchFailed(f"the page was redirected more than {_REDIRECTS} times")

    async def _read_pdf(self, body: _Body) -> Page:
        bounds = PdfBounds(seconds=self.settings.timeout * _PDF_SHARE)
        try:
            found = await read_pdf(body.data, "locus-plugin-web", bounds)
        except PdfMissing as e:
            raise FetchRefused(f"the page cannot be read: {e}") from None
        except PdfError as e:
            raise FetchFailed(f"the page is a PDF that cannot be read: {e}") from None
        return Page(
            url=str(body.target.url), title=found.title, text=found.text, is_whole=not found.stopped and body.is_whole
        )

    async def _robots(self, target: Target, visit: Visit) -> Robots:
        known = visit.robots.get(target.origin)
        if known is None:
            known = visit.robots[target.origin] = await self._ask_robots(target)
        return known

    async def _ask_robots(self, target: Target) -> Robots:
        """The rules of a site. One without any allows all; one whose rules cannot be read, nothing: RFC 9309, 2.3.1."""
        url = f"{target.origin}/robots.txt"
        try:
            for _ in range(_REDIRECTS + 1):
                found = await self._get(self._guard.check(url), MAX_BYTES, cut=True)
                if isinstance(found, _Body):
                    return parse_robots(found.data.decode("utf-8", "replace"), PRODUCT)
                url = found
        except BadStatus as e:
            return ALLOW_ALL if e.status < 500 else FORBID_ALL
        return ALLOW_ALL

    async def _get(self, target: Target, most: int, *, cut: bool = False) -> _Body | str:
        """The body at a target, or the URL that it redirects to.

        Args:
            target: what to ask for.
            most: bytes to read.
            cut: whether to keep the beginning of a larger body, and not to mind its type. Else what came of a packed
                body that is cut off is kept: rules of which some are missing could allow too much, a page could not.
        """
        headers = {"user-agent": self.settings.user_agent, "accept": _ACCEPT, **ACCEPTED}
        transport = GuardedTransport(self._guard, target, self._tls or tls_context())
        timeout = httpx2.Timeout(self.settings.timeout, connect=_CONNECT)
        try:
            async with (
                httpx2.AsyncClient(
                    transport=transport, trust_env=False, timeout=timeout, headers=headers, follow_redirects=False
                ) as http,
                http.stream("GET", target.url) as response,
            ):
                moved = response.headers.get("location")
                if response.status_code in (301, 302, 303, 307, 308) and moved is not None:
                    return str(target.url.join(moved))
                if response.status_code != 200:
                    raise BadStatus(target, response.status_code)
                media_type, charset = _type_of(response)
                if not cut:
                    _check_type(media_type)
                await unpack_within_bounds(response, free=_FREE)
                received = await read_at_most(response, most, cut=cut, keep_part=not cut)
        except httpx2.InvalidURL as e:
            raise FetchFailed(f"{target.host} redirects to what is not a URL: {_show(str(e))}") from None
        except httpx2.HTTPError as e:
            raise FetchFailed(f"{target.host} cannot be read: {type(e).__name__}: {_show(_reason(e))}") from None
        if received is None:
            raise FetchFailed(f"the page is larger than {most:,} bytes")
        return _Body(
            target=target, media_type=media_type, charset=charset, data=received.data, is_whole=received.is_whole
        )


class BadStatus(FetchFailed):
    """The server answered with another status than 200."""

    def __init__(self, target: Target, status: int) -> None:
        self.status = status
        super().__init__(f"{target.host} answered with status {status}")


def _type_of(response: httpx2.Response) -> tuple[str, str | None]:
    media_type, _, rest = response.headers.get("content-type", "").partition(";")
    charset = next(
        (part.partition("=")[2] for part in rest.split(";") if part.strip().lower().startswith("charset=")), None
    )
    return media_type.strip().lower(), charset


def _check_type(media_type: str) -> None:
    named = (*_HTML, *_PLAIN, _PDF, "")
    if not (media_type in named or media_type.startswith("text/") or media_type.endswith("+json")):
        raise FetchRefused(f"expected a page of text, got the type {_show(media_type)}")


def _read(body: _Body) -> Page:
    """The text of a body; in a thread, because a large page takes a while."""
    url = str(body.target.url)
    # Its characters, not its bytes: every other byte of English in UTF-16 is zero.
    head = decode_body(body.data[:_HEAD], body.charset, is_html=False)
    if "\0" in head:
        raise FetchRefused("expected a page of text, got binary data")
    is_html = body.media_type in _HTML or (
        not body.media_type and head[:512].lstrip().lower().startswith(("<!doctype html", "<html"))
    )
    text = decode_body(body.data, body.charset, is_html=is_html)
    if is_html:
        read = read_page(text, url)
    else:
        read = Text("", remove_invisible(text.replace("\r\n", "\n").replace("\r", "\n")).strip())
    return Page(url=url, title=read.title, text=read.text, is_whole=read.is_whole and body.is_whole)


def _reason(error: BaseException) -> str:
    """What it says, or what that says which it came of."""
    inner: BaseException | None = error
    while inner is not None and not str(inner):
        inner = inner.__cause__ or inner.__context__
    return "" if inner is None else str(inner)


def _show(text: str) -> str:
    return escape_invisible(text[:_SHOWN])
