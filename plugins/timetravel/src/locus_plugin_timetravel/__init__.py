"""Time travel: what a journal makes possible once it is written.

The functions take an agent or the store that keeps its threads; `replay` is about an agent's code and takes an agent.
Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus.journal import History, HistoryEntry
    from locus_plugin_timetravel.difference import Difference
    from locus_plugin_timetravel.diffs import Act, Diff, Row, diff, diff_threads
    from locus_plugin_timetravel.export import export_thread, import_thread
    from locus_plugin_timetravel.forks import fork
    from locus_plugin_timetravel.histories import history, state_at
    from locus_plugin_timetravel.replays.report import Replay, replay
    from locus_plugin_timetravel.replays.requests import RebuiltRequest, model_requests
    from locus_plugin_timetravel.text import format_history
    from locus_plugin_timetravel.whatif import RouterLike, WhatIf, what_if

__all__ = [
    "Act",
    "Diff",
    "Difference",
    "History",
    "HistoryEntry",
    "RebuiltRequest",
    "Replay",
    "RouterLike",
    "Row",
    "WhatIf",
    "diff",
    "diff_threads",
    "export_thread",
    "fork",
    "format_history",
    "history",
    "import_thread",
    "model_requests",
    "replay",
    "state_at",
    "what_if",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus.journal.history": ("History", "HistoryEntry"),
        "locus_plugin_timetravel.difference": ("Difference",),
        "locus_plugin_timetravel.diffs": ("Act", "Diff", "Row", "diff", "diff_threads"),
        "locus_plugin_timetravel.export": ("export_thread", "import_thread"),
        "locus_plugin_timetravel.forks": ("fork",),
        "locus_plugin_timetravel.histories": ("history", "state_at"),
        "locus_plugin_timetravel.replays.report": ("Replay", "replay"),
        "locus_plugin_timetravel.replays.requests": ("RebuiltRequest", "model_requests"),
        "locus_plugin_timetravel.text": ("format_history",),
        "locus_plugin_timetravel.whatif": ("RouterLike", "WhatIf", "what_if"),
    },
)
