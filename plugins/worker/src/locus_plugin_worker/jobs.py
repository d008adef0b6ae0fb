"""What a slot works on, and what becomes of it: the seam between a worker and those who know how to run something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from attrs import field, frozen

if TYPE_CHECKING:
    import anyio

    from locus.journal import JournalStore

__all__ = ["Back", "Done", "Handler", "Job", "Verdict"]


@frozen(kw_only=True)
class Job:
    """An offer in a slot.

    Args:
        thread_id: the thread that is to go on.
        queue: where it was offered.
        delivered: how often it was offered in a row, this time included: above 1 where a worker has died.
        lease: seconds after which a silent worker is taken for dead.
        worker: the worker's name, for `JournalStore.claim`.
        store: where the thread is kept.
        leaving: set when the worker drains: stop at the next place from which another worker can go on.
    """

    thread_id: str
    queue: str
    delivered: int
    lease: float
    worker: str
    store: JournalStore = field(repr=False)
    leaving: anyio.Event = field(repr=False, eq=False)


@frozen(kw_only=True)
class Done:
    """The offer is over. It is acknowledged last, when everything else is stored.

    Args:
        text: how it ended, for people.
        is_failure: it failed, or was set aside.
    """

    text: str = ""
    is_failure: bool = False


@frozen(kw_only=True)
class Back:
    """The offer goes back to its queue.

    Args:
        delay: seconds until it is offered again.
        queue: where it waits from now on; None = where it was.
        text: why, for people.
        is_failure: something failed.
    """

    delay: float = 0.0
    queue: str | None = None
    text: str = ""
    is_failure: bool = False


Verdict = Done | Back

#: Runs one job. None is `Done`; an exception gives the job back, later each time.
Handler = Callable[[Job], Awaitable[Verdict | None]]
