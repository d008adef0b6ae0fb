"""What a person reads when a store fails: what was to be done, what was saved, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from locus.core.errors import StoreError
from locus.core.journal import Transition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from locus.core.errors import JournalError
    from locus.core.journal import Body
    from locus.journal.store import JournalStore

__all__ = ["ENDED", "HELD", "LEFT_OPEN", "NOT_BEGUN", "UNCHANGED", "listed", "refuse", "store_error"]

#: What a failure of the store means, and what to do.
UNCHANGED = "nothing was written; try again once the cause is gone"
NOT_BEGUN = "nothing of this run was saved; run it again once the cause is gone"
LEFT_OPEN = (
    "what was committed before stands and the run is left open: once the cause is gone, resume(thread_id) goes on"
)
ENDED = "the run has ended, and what it did is saved"
HELD = "what the run did is saved; the thread stays busy until the store finds that its holder is gone"


def store_error(store: JournalStore, thread_id: str, doing: str, error: Exception, meaning: str) -> StoreError:
    """The failure of a store, for a person.

    Args:
        store: the store.
        thread_id: the thread.
        doing: what was to be done.
        error: what was raised.
        meaning: what it means for the run, one of the texts above.
    """
    name = type(store).__name__
    what = f"{type(error).__name__}: {error}"
    return StoreError(f"thread {thread_id!r}: {name} could not {doing}: {what}; {meaning}", store=name)


def listed(bodies: Iterable[Body]) -> str:
    """What was to be written, for people."""
    names = []
    for body in bodies:
        about = f"{body.node} -> {body.next_node}" if isinstance(body, Transition) else getattr(body, "step_id", "")
        names.append(f"{type(body).__name__} {about}".rstrip())
    return ", ".join(names)


async def refuse(error: JournalError, *_: object) -> NoReturn:
    """Stands in for a store's methods once the run must write nothing more."""
    raise error
