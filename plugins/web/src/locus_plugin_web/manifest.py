"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="web",
    api=(1, 0),
    summary="Fetches web pages as Markdown, and searches the web; reaches nothing that is not public.",
    hooks=("locus_plugin_web.hook:WebHook",),
    settings="locus_plugin_web.settings:WebSettings",
)
