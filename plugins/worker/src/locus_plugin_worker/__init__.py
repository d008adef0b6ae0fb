"""Workers: processes that take submitted runs from a queue, finish them, and survive one another.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_worker.following import follow
    from locus_plugin_worker.jobs import Back, Done, Handler, Job
    from locus_plugin_worker.loading import load_agent
    from locus_plugin_worker.moments import Moment, read_moments
    from locus_plugin_worker.notices import Notice
    from locus_plugin_worker.worker import Worker

__all__ = [
    "Back",
    "Done",
    "Handler",
    "Job",
    "Moment",
    "Notice",
    "Worker",
    "follow",
    "load_agent",
    "read_moments",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_worker.following": ("follow",),
        "locus_plugin_worker.jobs": ("Back", "Done", "Handler", "Job"),
        "locus_plugin_worker.loading": ("load_agent",),
        "locus_plugin_worker.moments": ("Moment", "read_moments"),
        "locus_plugin_worker.notices": ("Notice",),
        "locus_plugin_worker.worker": ("Worker",),
    },
)
