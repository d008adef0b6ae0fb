"""Time travel: what a journal makes possible once it is written. Each function needs a store, and no agent."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.travel.difference import Difference
    from locus.travel.forking import fork
    from locus.travel.moments import History, Moment, history, state_at
    from locus.travel.replays import Replay, replay

__all__ = ["Difference", "History", "Moment", "Replay", "fork", "history", "replay", "state_at"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Difference": "locus.travel.difference",
        "History": "locus.travel.moments",
        "Moment": "locus.travel.moments",
        "Replay": "locus.travel.replays",
        "fork": "locus.travel.forking",
        "history": "locus.travel.moments",
        "replay": "locus.travel.replays",
        "state_at": "locus.travel.moments",
    },
)
