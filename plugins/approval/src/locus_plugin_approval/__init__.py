"""Approval: a person allows, rejects or edits the calls of the tools that the settings name.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_approval.hook import ApprovalHook
    from locus_plugin_approval.report import ApprovalReport
    from locus_plugin_approval.settings import ApprovalSettings

__all__ = ["ApprovalHook", "ApprovalReport", "ApprovalSettings"]

_MODULES = {
    "hook": ("ApprovalHook",),
    "report": ("ApprovalReport",),
    "settings": ("ApprovalSettings",),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_approval.{module}": names for module, names in _MODULES.items()}
)
