"""A viewer: the threads of a store, and each run as a timeline, on a web page of this machine.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_viewer.app import make_app
    from locus_plugin_viewer.viewer import Viewer

__all__ = ["Viewer", "make_app"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_viewer.app": ("make_app",),
        "locus_plugin_viewer.viewer": ("Viewer",),
    },
)
