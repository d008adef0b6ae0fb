"""The web for Locus agents: pages as Markdown, and a search, without reaching what is not public.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_web.addresses import is_public
    from locus_plugin_web.engines import SearchEngine, SearchHit, SearxngEngine
    from locus_plugin_web.errors import FetchFailed, FetchRefused, SearchFailed, WebError
    from locus_plugin_web.fetching import Fetcher, Page, Visit
    from locus_plugin_web.hook import WebHook
    from locus_plugin_web.settings import WebSettings
    from locus_plugin_web.tools import make_web_tools

__all__ = [
    "FetchFailed",
    "FetchRefused",
    "Fetcher",
    "Page",
    "SearchEngine",
    "SearchFailed",
    "SearchHit",
    "SearxngEngine",
    "Visit",
    "WebError",
    "WebHook",
    "WebSettings",
    "is_public",
    "make_web_tools",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_web.addresses": ("is_public",),
        "locus_plugin_web.engines": ("SearchEngine", "SearchHit", "SearxngEngine"),
        "locus_plugin_web.errors": ("FetchFailed", "FetchRefused", "SearchFailed", "WebError"),
        "locus_plugin_web.fetching": ("Fetcher", "Page", "Visit"),
        "locus_plugin_web.hook": ("WebHook",),
        "locus_plugin_web.settings": ("WebSettings",),
        "locus_plugin_web.tools": ("make_web_tools",),
    },
)
