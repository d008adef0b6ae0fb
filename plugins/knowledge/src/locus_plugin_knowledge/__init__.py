"""Knowledge for Locus: scans that research each item of a domain into a row, and a catalog that agents search.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_knowledge.catalog import SqliteCatalog
    from locus_plugin_knowledge.errors import CatalogError
    from locus_plugin_knowledge.events import ScanItemEvent
    from locus_plugin_knowledge.hook import KnowledgeHook, make_search_tool
    from locus_plugin_knowledge.protocol import Grounding, ItemRef, KnowledgeProvider, KnowledgeRow
    from locus_plugin_knowledge.query import Found
    from locus_plugin_knowledge.research import Fact
    from locus_plugin_knowledge.scans import ScanResult, compile_scan, scan
    from locus_plugin_knowledge.settings import KnowledgeSettings

__all__ = [
    "CatalogError",
    "Fact",
    "Found",
    "Grounding",
    "ItemRef",
    "KnowledgeHook",
    "KnowledgeProvider",
    "KnowledgeRow",
    "KnowledgeSettings",
    "ScanItemEvent",
    "ScanResult",
    "SqliteCatalog",
    "compile_scan",
    "make_search_tool",
    "scan",
]

_MODULES = {
    "catalog": ("SqliteCatalog",),
    "errors": ("CatalogError",),
    "events": ("ScanItemEvent",),
    "hook": ("KnowledgeHook", "make_search_tool"),
    "protocol": ("Grounding", "ItemRef", "KnowledgeProvider", "KnowledgeRow"),
    "query": ("Found",),
    "research": ("Fact",),
    "scans": ("ScanResult", "compile_scan", "scan"),
    "settings": ("KnowledgeSettings",),
}

__getattr__, __dir__ = exports(__name__, {f"{__name__}.{module}": names for module, names in _MODULES.items()})
