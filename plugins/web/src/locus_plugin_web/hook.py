"""`WebHook`: gives an agent the tools."""

from __future__ import annotations

from locus.plugin import Hook, hookimpl
from locus_plugin_web.settings import WebSettings
from locus_plugin_web.tools import make_web_tools

__all__ = ["WebHook"]


class WebHook(Hook):
    """Brings ``fetch_url``, and ``web_search`` where an engine is named.

    Args:
        settings: what may be fetched, and where to search; None = the defaults.
    """

    name = "web"

    def __init__(self, settings: WebSettings | None = None) -> None:
        self.settings = WebSettings() if settings is None else settings

    @hookimpl
    def locus_register_tools(self) -> list[object]:
        """The tools."""
        return list(make_web_tools(self.settings))
