"""A dispatch: what a worker is offered, and what it says about it."""

from __future__ import annotations

from typing import Literal, Protocol

from attrs import frozen

__all__ = ["DispatchNotice", "Dispatched", "Ended", "NoticeKind"]


class Dispatched(Protocol):
    """What a dispatch is about: an offer, or a job of another worker."""

    @property
    def thread_id(self) -> str:
        """The thread of a run or of a step."""

    @property
    def queue(self) -> str:
        """Where it was offered."""

    @property
    def lease(self) -> float:
        """Seconds after which it is offered to another worker."""


@frozen
class Ended:
    """What became of a dispatch.

    Args:
        delay: seconds until it is due again; None when nothing is left to do.
        error: why its step has failed for good.
    """

    delay: float | None = None
    error: str = ""


#: What a worker says.
NoticeKind = Literal["taken", "done", "back", "lost", "error", "stuck"]


@frozen
class DispatchNotice:
    """One thing that happened to a worker, for a meter.

    Args:
        kind: ``"taken"``: a dispatch has begun in a slot. ``"done"``: nothing is left to do for its step. ``"back"``:
            the step goes on later. ``"lost"``: another worker has it. ``"error"``: the store failed. ``"stuck"``: the
            event loop has not turned for too long.
        thread_id: the thread of the run or of the step.
        delivered: how often it has been offered, this time included; 0 where that is not known.
        text: what went wrong.
        is_failure: the step failed, or the worker is not well.
        seconds: how long it was in its slot.
    """

    kind: NoticeKind
    thread_id: str = ""
    delivered: int = 0
    text: str = ""
    is_failure: bool = False
    seconds: float = 0.0
