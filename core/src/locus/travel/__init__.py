"""Time travel: what a journal makes possible once it is written. Each function needs a store, and no agent."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.travel.comparing import Act, Diff, Row, diff
    from locus.travel.difference import Difference
    from locus.travel.forking import fork
    from locus.travel.moments import History, Moment, history, state_at
    from locus.travel.replays import Replay
    from locus.travel.transfer import export_thread, import_thread
    from locus.travel.whatif import RouterLike, WhatIf, what_if

__all__ = [
    "Act",
    "Diff",
    "Difference",
    "History",
    "Moment",
    "Replay",
    "RouterLike",
    "Row",
    "WhatIf",
    "diff",
    "export_thread",
    "fork",
    "history",
    "import_thread",
    "state_at",
    "what_if",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Act": "locus.travel.comparing",
        "Diff": "locus.travel.comparing",
        "Difference": "locus.travel.difference",
        "History": "locus.travel.moments",
        "Moment": "locus.travel.moments",
        "Replay": "locus.travel.replays",
        "RouterLike": "locus.travel.whatif",
        "Row": "locus.travel.comparing",
        "WhatIf": "locus.travel.whatif",
        "diff": "locus.travel.comparing",
        "export_thread": "locus.travel.transfer",
        "fork": "locus.travel.forking",
        "history": "locus.travel.moments",
        "import_thread": "locus.travel.transfer",
        "state_at": "locus.travel.moments",
        "what_if": "locus.travel.whatif",
    },
)
