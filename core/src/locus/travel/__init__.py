"""Time travel: what a journal makes possible once it is written. Each function needs a store, and no agent."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.travel.forking import fork
    from locus.travel.moments import History, Moment, history, state_at

__all__ = ["History", "Moment", "fork", "history", "state_at"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "History": "locus.travel.moments",
        "Moment": "locus.travel.moments",
        "fork": "locus.travel.forking",
        "history": "locus.travel.moments",
        "state_at": "locus.travel.moments",
    },
)
