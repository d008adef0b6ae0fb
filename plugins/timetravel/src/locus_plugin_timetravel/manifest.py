"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_NAMES = {
    "Act": "diffs",
    "Diff": "diffs",
    "Difference": "difference",
    "RebuiltRequest": "replays.requests",
    "Replay": "replays.report",
    "RouterLike": "whatif",
    "Row": "diffs",
    "WhatIf": "whatif",
    "diff": "diffs",
    "diff_threads": "diffs",
    "export_thread": "export",
    "fork": "forks",
    "format_history": "text",
    "history": "histories",
    "import_thread": "export",
    "model_requests": "replays.requests",
    "replay": "replays.report",
    "state_at": "histories",
    "what_if": "whatif",
}

plugin = Plugin(
    name="timetravel",
    api=(1, 0),
    summary="Looks back on threads, forks, replays, compares and moves them, and asks what another rule had done.",
    provides={"commands": "locus_plugin_timetravel.commands.registration"},
    compat_paths={
        **{f"locus.timetravel:{name}": f"locus_plugin_timetravel.{home}:{name}" for name, home in _NAMES.items()},
        "locus.timetravel:History": "locus.journal.history:History",
        "locus.timetravel:HistoryEntry": "locus.journal.history:HistoryEntry",
    },
)
