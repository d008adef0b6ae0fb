"""The writes of a journal's host: how long an entry may wait, an append under way, and the error when it fails.

A message about a store that failed says what was to be done, what was saved, and what to do next.
"""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

import anyio
from attrs import define

from locus.core.errors import Fenced, JournalError, LocusError, StepMismatch, StoreError
from locus.core.journal import Transition
from locus.journal.store import Appended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from locus.core.journal import Body
    from locus.core.state import AgentState
    from locus.core.step_id import StepId
    from locus.journal.signals import Watch
    from locus.journal.store import Claim, JournalStore, Posted

T = TypeVar("T")

#: When an entry must be written. ``"now"``: before the call returns. ``"meanwhile"``: it is begun, and the loop goes
#: on; it is there before the next entry, and before the next effect except a model call. ``"next"``: together with the
#: next entry, which comes before any effect. All but ``"now"`` are permissions: a host may always write at once.
When = Literal["now", "meanwhile", "next"]

#: By the node that follows a transition that is not reported to anybody.
WHEN_BEFORE: Mapping[str, When] = {"think": "meanwhile", "execute": "next", "terminate": "next", "end": "meanwhile"}


@define(eq=False)
class PendingWrite:
    """An append under way.

    Args:
        posted: asks the store.
        bodies: what is written.
        then: state and last transition once it is.
    """

    posted: Posted
    bodies: tuple[Body, ...]
    then: tuple[AgentState, Transition | None]
    _is_waited_for: bool = False
    _others: anyio.Event | None = None

    async def wait(self) -> Appended | None:
        """What came of it; None where another task waited for it first, and got the answer or was cancelled."""
        if self._is_waited_for:
            if self._others is None:
                self._others = anyio.Event()
            await self._others.wait()
            return None
        self._is_waited_for = True
        try:
            return await self.posted.wait()
        finally:
            self._is_waited_for = False
            if self._others is not None:
                self._others.set()
                self._others = None


#: What a failure of the store means, and what to do.
UNCHANGED = "nothing was written; fix the cause, then try again"
NOT_BEGUN = "nothing of this run was saved; fix the cause, then run it again"
LEFT_OPEN = "what was committed before is kept and the run is left open: fix the cause, then call resume(thread_id)"
ENDED = "the run has ended, and what it did is saved"
_KEPT_BUSY = "what the run did is saved; the thread stays busy until the store finds that its holder is gone"


def _store_error(store: JournalStore, thread_id: str, doing: str, error: Exception, meaning: str) -> StoreError:
    name = type(store).__name__
    what = f"{type(error).__name__}: {error}"
    return StoreError(f"thread {thread_id!r}: {name} could not {doing}: {what}; {meaning}", store=name)


def write_error(store: JournalStore, thread_id: str, doing: str, error: Exception, node: str | None) -> StoreError:
    """The failure of a write, for a person.

    The node is where the run goes on by what is stored; None = it has ended, ``""`` = nothing of it is stored.
    """
    return _store_error(store, thread_id, doing, error, ENDED if node is None else LEFT_OPEN if node else NOT_BEGUN)


def describe_bodies(bodies: Iterable[Body]) -> str:
    """What was to be written, for an error's text."""
    names = []
    for body in bodies:
        about = f"{body.node} -> {body.next_node}" if isinstance(body, Transition) else getattr(body, "step_id", "")
        names.append(f"{type(body).__name__} {about}".rstrip())
    return ", ".join(names)


async def refuse(error: JournalError, *_: object) -> NoReturn:
    """Stands in for a store's methods once the run must write nothing more."""
    raise error


def guard_writes(
    above: Sequence[Watch],
    append: Callable[..., Awaitable[Appended]],
    post: Callable[..., Posted] | None,
) -> tuple[Callable[..., Awaitable[Appended]], Callable[..., Posted] | None]:
    """The writes of a child's store, which are refused once one of these claims is lost.

    A child that is cancelled because the run above was overtaken would end in its own journal, whose claim it still
    has, and the successor would read that end instead of going on.
    """

    def check(write: Callable[..., T]) -> Callable[..., T]:
        def write_unless_lost(claim: Claim, *args: object, **options: object) -> T:
            if any(watch.is_lost for watch in above):
                raise fenced_error(claim.thread_id, Appended.FENCED)
            return write(claim, *args, **options)

        return write_unless_lost

    return check(append), post and check(post)


def fenced_error(thread_id: str, got: Appended) -> Fenced:
    """This worker lost the thread, or cannot know whether it did: the next claim shows what is stored."""
    return Fenced(
        f"thread {thread_id!r}: another worker took the run over, or the store did not say whether the entry was "
        f"stored ({got.value}); this worker stops; call resume(thread_id)"
    )


async def ask_store(look: Callable[[], Awaitable[T]]) -> T | None:
    """What a store says after a cancel, within 5 seconds; None where it says nothing."""
    with anyio.move_on_after(5, shield=True), contextlib.suppress(JournalError):
        return await look()
    return None


def mismatch_error(step_id: StepId, recorded: str, asked: str) -> StepMismatch:
    """A step that is not the one on record at its place."""
    return StepMismatch(
        f"step {str(step_id)!r} was recorded for {recorded!r} and is asked for {asked!r}; the code or its "
        "configuration changed since: finish the run with the version that started it"
    )


@contextmanager
def report_errors(store: JournalStore, thread_id: str, doing: str, meaning: str) -> Iterator[None]:
    """Turn what a store raises into a `StoreError` that ends with ``meaning``; the rest as in `write_error`."""
    try:
        yield
    except LocusError:
        raise
    except Exception as e:
        raise _store_error(store, thread_id, doing, e, meaning) from e


async def release(store: JournalStore, claim: Claim, not_before: datetime | None = None, *, is_empty: bool) -> None:
    """Give a thread back, and forget one without entries: the claim alone would be listed as a thread.

    Raises:
        StoreError: the store failed; what was committed is kept.
    """
    with report_errors(store, claim.thread_id, "give the thread back", _KEPT_BUSY):
        await store.release(claim, not_before)
    if is_empty:
        with contextlib.suppress(Exception):
            await store.delete(claim.thread_id, head=0)


async def release_unreadable(store: JournalStore, claim: Claim, error: BaseException) -> None:
    """Release a thread that cannot be read; ``error`` is what is raised, and a failure to release a note on it."""
    try:
        with anyio.CancelScope(shield=True):
            await store.release(claim)
    except Exception as failed:  # noqa: BLE001  a store is foreign code
        error.add_note(f"and {type(store).__name__} could not give the thread back: {failed!r}")
