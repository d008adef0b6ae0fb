"""An agent behind an address: each request is a run on the journal.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_serve.app import make_app
    from locus_plugin_serve.server import serve
    from locus_plugin_serve.settings import ServeSettings

__all__ = ["ServeSettings", "make_app", "serve"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_serve.app": ("make_app",),
        "locus_plugin_serve.server": ("serve",),
        "locus_plugin_serve.settings": ("ServeSettings",),
    },
)
