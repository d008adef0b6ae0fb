"""Provenance: asks before a call reaches a target that someone other than the user may have chosen.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_provenance.events import TaintedCallEvent
    from locus_plugin_provenance.hook import ProvenanceHook
    from locus_plugin_provenance.report import ProvenanceReport
    from locus_plugin_provenance.settings import ProvenanceSettings, ToolRule

__all__ = ["ProvenanceHook", "ProvenanceReport", "ProvenanceSettings", "TaintedCallEvent", "ToolRule"]

_MODULES = {
    "events": ("TaintedCallEvent",),
    "hook": ("ProvenanceHook",),
    "report": ("ProvenanceReport",),
    "settings": ("ProvenanceSettings", "ToolRule"),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_provenance.{module}": names for module, names in _MODULES.items()}
)
