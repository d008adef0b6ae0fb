"""`Notice`: what a worker says about its work, for a person's terminal, a log or a meter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from attrs import asdict, field, frozen

__all__ = ["Notice", "NoticeKind"]

#: ``"started"``, ``"draining"``, ``"stopped"``: the worker. ``"queue"``: a queue of a pattern has turned up.
#: ``"taken"``: a run has begun in a slot. ``"done"``: it is over for the queue: it ended, failed, waits for a person or
#: was set aside. ``"back"``: it was given back. ``"lost"``: another worker has it now. ``"error"``: a store or a
#: handler failed. ``"stuck"``: the event loop has not turned for too long.
NoticeKind = Literal["started", "queue", "taken", "done", "back", "lost", "error", "draining", "stopped", "stuck"]


@frozen(kw_only=True)
class Notice:
    """One thing that happened to a worker.

    Args:
        kind: what it is.
        worker: the worker's name.
        thread_id: the thread of the run; ``""`` where it is about the worker.
        queue: where the run was offered, or the queue that turned up.
        agent: who runs it.
        delivered: how often it has been offered, this time included; 0 where that is not known.
        text: how a run ended, why it was given back, or what went wrong.
        is_failure: the run failed or was set aside, or the worker is not well.
        seconds: how long the run was in its slot, or the delay until it is offered again.
        busy: how many slots are in use.
        at: when, UTC.
    """

    kind: NoticeKind
    worker: str
    thread_id: str = ""
    queue: str = ""
    agent: str = ""
    delivered: int = 0
    text: str = ""
    is_failure: bool = False
    seconds: float = 0.0
    busy: int = 0
    at: datetime = field(factory=lambda: datetime.now(UTC))

    def to_json(self) -> dict[str, Any]:
        """The JSON form: every field by its name."""
        return {**asdict(self), "at": self.at.isoformat(), "seconds": round(self.seconds, 3)}
