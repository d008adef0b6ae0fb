"""Tool retrieval for Locus agents: of many tools the model is sent the few that fit.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_toolsearch.events import ToolsOfferedEvent
    from locus_plugin_toolsearch.hook import ToolSearchHook
    from locus_plugin_toolsearch.index import Index
    from locus_plugin_toolsearch.minilm import EmbeddingUnavailable, MiniLM
    from locus_plugin_toolsearch.report import ToolSearchReport
    from locus_plugin_toolsearch.settings import ToolSearchSettings

__all__ = [
    "EmbeddingUnavailable",
    "Index",
    "MiniLM",
    "ToolSearchHook",
    "ToolSearchReport",
    "ToolSearchSettings",
    "ToolsOfferedEvent",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_toolsearch.events": ("ToolsOfferedEvent",),
        "locus_plugin_toolsearch.hook": ("ToolSearchHook",),
        "locus_plugin_toolsearch.index": ("Index",),
        "locus_plugin_toolsearch.minilm": ("EmbeddingUnavailable", "MiniLM"),
        "locus_plugin_toolsearch.report": ("ToolSearchReport",),
        "locus_plugin_toolsearch.settings": ("ToolSearchSettings",),
    },
)
