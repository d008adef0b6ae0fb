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
    from locus_plugin_timetravel.text import format_history
    from locus_plugin_timetravel.whatif import RouterLike, WhatIf, what_if

__all__ = [
    "Act",
    "Diff",
    "Difference",
    "History",
    "HistoryEntry",
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
    "replay",
    "state_at",
    "what_if",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Act": "locus_plugin_timetravel.diffs",
        "Diff": "locus_plugin_timetravel.diffs",
        "Difference": "locus_plugin_timetravel.difference",
        "History": "locus.journal.history",
        "HistoryEntry": "locus.journal.history",
        "Replay": "locus_plugin_timetravel.replays.report",
        "RouterLike": "locus_plugin_timetravel.whatif",
        "Row": "locus_plugin_timetravel.diffs",
        "WhatIf": "locus_plugin_timetravel.whatif",
        "diff": "locus_plugin_timetravel.diffs",
        "diff_threads": "locus_plugin_timetravel.diffs",
        "export_thread": "locus_plugin_timetravel.export",
        "fork": "locus_plugin_timetravel.forks",
        "format_history": "locus_plugin_timetravel.text",
        "history": "locus_plugin_timetravel.histories",
        "import_thread": "locus_plugin_timetravel.export",
        "replay": "locus_plugin_timetravel.replays.report",
        "state_at": "locus_plugin_timetravel.histories",
        "what_if": "locus_plugin_timetravel.whatif",
    },
)
