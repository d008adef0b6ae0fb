"""The journal-store protocol: what ``checkpointer=`` takes.

A store keeps one journal a thread and guarantees two things: an append is atomic, and only the holder of the
newest claim may append (fencing by the head of the journal, never by clocks).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from attrs import field

from locus.core.errors import JournalDamaged
from locus.core.frozen import frozen
from locus.journal.signals import Signal, Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from locus.core.journal import Body, Entry, Transition
    from locus.core.state import AgentState

#: ``"new"``: no run has begun. ``"queued"``: one was handed in for a worker. ``"running"``: a live worker holds it.
#: ``"crashed"``: a run is open and its worker is gone. ``"waiting"``: it waits for a person's answer. ``"paused"``: its
#: segment ended in good order, the run did not. ``"ended"``, ``"failed"``: its newest run ended, or ended by an error.
#: ``"dead_letter"``: it was set aside. ``"damaged"``: what the store has of it is not what was written; reading it says
#: more.
ThreadStatus = Literal[
    "new", "queued", "running", "crashed", "waiting", "paused", "ended", "failed", "dead_letter", "damaged"
]


class Appended(Enum):
    """What became of an append."""

    #: Stored; the head moved by the number of bodies.
    OK = "ok"
    #: Refused: another claim was made since, or this one was released; nothing was stored.
    FENCED = "fenced"
    #: Unknown (a lost connection): claim again and compare writer tokens.
    UNKNOWN = "unknown"


@frozen
class Snapshot:
    """A cached fold: the state after the first ``at`` entries, the last of which is a transition."""

    at: int
    state: AgentState
    last: Transition


@frozen(kw_only=True)
class Claim:
    """The right to append to a thread, and its entries.

    Args:
        thread_id: the thread.
        token: names this writer in its entries; unique for ever.
        head: number of the newest entry, 0 for a new thread.
        snapshot: the newest cached fold, or None.
        entries: the entries after the snapshot, oldest first.
        is_abandoned: whether the worker that held the thread last is gone and did not give it back, where the store
            knows. Of a run that has ended, the end may be unreported then.
        signals: those left at the thread, where the store brings signals (`QueueStore`).
        watch: where the store says what it finds out about the claim by itself: that it was lost, and signals.
    """

    thread_id: str
    token: str
    head: int
    snapshot: Snapshot | None = None
    entries: tuple[Entry, ...] = field(default=(), repr=False)
    is_abandoned: bool = False
    signals: tuple[Signal, ...] = ()
    watch: Watch = field(factory=Watch, eq=False, repr=False)


@frozen(kw_only=True)
class ThreadInfo:
    """One thread, for listings.

    Args:
        thread_id: the thread.
        head: number of its newest entry.
        holder: who holds it, or None.
        updated_at: when it was changed last.
        since: when its holder claimed it, where the store knows.
        status: how its newest run is, or None where the store does not record that.
        node: where an open run goes on, ``"end"`` where it has ended, or ``""``.
        title: the first words of its first prompt, or ``""``.
        model: the model that answered last, where that is on record, or ``""``.
        agent_id: the name of the agent whose run is the newest, or ``""`` for one without a name.
        forked_from: the thread whose entries this one shares, as long as that one exists.
        created_at: when it was claimed first, where the store knows.
        metadata: the short entries of its runs' metadata: text up to 200 characters, numbers, booleans and None.
    """

    thread_id: str
    head: int
    holder: str | None = None
    updated_at: datetime | None = None
    since: datetime | None = None
    status: ThreadStatus | None = None
    node: str = ""
    title: str = ""
    model: str = ""
    agent_id: str = ""
    forked_from: str | None = None
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(factory=dict)


def _statuses(value: Iterable[ThreadStatus]) -> frozenset[ThreadStatus]:
    return frozenset(value)


@frozen(kw_only=True)
class ThreadQuery:
    """Which threads to list; what is not given selects all.

    Args:
        status: threads with one of these.
        updated_before: threads that were changed last before this.
        agent_id: threads whose newest run is that of the agent with this name; ``""`` for agents without one.
        metadata: threads whose metadata has these entries with these values.
        limit: how many threads at most.
        after: id of the last thread of the page before; the next page begins behind it.
    """

    status: frozenset[ThreadStatus] = field(default=frozenset(), converter=_statuses)
    updated_before: datetime | None = None
    agent_id: str | None = None
    metadata: Mapping[str, Any] = field(factory=dict)
    limit: int | None = None
    after: str | None = None


class Posted(Protocol):
    """An append under way."""

    async def wait(self) -> Appended:
        """What came of it, as `JournalStore.append` says it: also when that has been known for long.

        A cancellation is raised when it is known, and a caller that asks again gets it. One task waits at a time.
        """


class PostingStore(Protocol):
    """What a `JournalStore` may offer beside the rest: the model is asked while a finished turn is written."""

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        """Begin an append, and return at once. What is asked of the store from now on comes behind it.

        Args:
            claim: as in `JournalStore.append`.
            bodies: the same.
            after: the post before, where what came of it was not reported yet: nothing is stored behind one that
                was not, and this one is then `Appended.FENCED`.

        Raises:
            NotSerialisable: one of the bodies has no JSON form; nothing was begun.
        """


class FoldingStore(Protocol):
    """What a `JournalStore` may offer beside the rest: a run that yields goes on without being folded anew.

    A run that yields after each iteration would otherwise be read from its beginning as often as it has iterations.
    """

    def keep_fold(self, claim: Claim, fold: Snapshot) -> None:
        """Remember a fold in this process; called before the thread is given back, when all is written.

        The next claim of the thread may show it as its snapshot, unless another writer came between. A store may
        forget it at any time, and keeps a bounded number of them.

        Args:
            claim: of the thread.
            fold: the state after its newest transition.
        """


@runtime_checkable
class JournalStore(Protocol):
    """Keeps journals. Every method may be called from any task; none may block the event loop."""

    async def claim(self, thread_id: str, worker: str) -> Claim:
        """Take a thread: moves its head, which fences every older claim.

        Raises:
            ThreadBusy: a live worker holds it.
        """

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        """Add entries after the claim's own last one: all of them or none, in one write.

        Raises:
            StoreError: the store failed; nothing was written, and the run breaks off. So it does at any other error.
            NotSerialisable: a value has no JSON form; nothing was written, and the run goes on.
        """

    @property
    def keeps_history(self) -> bool:
        """False for a store that keeps the newest state only.

        The loop then gives it `snapshot` in place of each transition's entry, and `append` for steps alone.
        """

    @property
    def snapshot_every(self) -> int | None:
        """After how many entries the loop offers a snapshot of a kept history; None = never."""

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        """Cache the fold of the first ``at`` entries, of which ``last`` is the newest.

        A store that keeps history may ignore it. False: another claim was made since, or this one was released;
        nothing was stored.
        """

    async def renew(self, claim: Claim) -> bool:
        """Say that the worker lives; False when the claim was lost or released."""

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        """Give the thread back; a lost claim is released silently.

        The claim is over: what it would still append is `Appended.FENCED`, as after another claim.

        Args:
            claim: what `claim` returned.
            not_before: when the run wants to go on, for `next_ready`; None = when it is resumed.
        """

    async def next_ready(self, now: datetime) -> str | None:
        """A thread that wants to go on by now and that is not held, or None."""

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        """The accepted entries after number ``after``, oldest first, without a claim."""

    async def peek(self, thread_id: str) -> Claim | None:
        """What a claim would show, without taking the thread (its token is ``""``); None for an empty thread."""

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        """The threads that a query selects, or all of them; the most recently changed first.

        Raises:
            JournalError: the store does not record what the query asks for, or its ``after`` is not a thread.
        """

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        """A new thread that begins with the first ``at`` entries of another; it is not held.

        The entries keep their numbers, writers and parents, and are shared where a store can share them. The thread
        that is forked may be held meanwhile: what it has accepted does not change.

        Args:
            thread_id: the thread to fork.
            at: how many of its entries the new one begins with, from 1.
            into: the new thread's id.
            bodies: entries to write behind those, in the same write: all of it is stored or nothing.

        Raises:
            NothingToResume: the thread does not exist.
            JournalError: ``into`` is taken, ``at`` is not the number of an entry, or the store keeps no history.
        """

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        """Forget a thread, and none of its forks; False when it does not exist.

        Args:
            thread_id: the thread.
            head: forget it only while this is the number of its newest entry; False when it is not.

        Raises:
            ThreadBusy: a live worker holds it.
        """


def check_chain(thread_id: str, entries: Sequence[Entry], after: int = 0) -> None:
    """Insist that entries follow one another without a gap, each naming the one before as its parent.

    Args:
        thread_id: the thread, for the error.
        entries: what a store gave back, oldest first.
        after: number of the entry that they must follow; what that one's writer was is not known here.

    Raises:
        JournalDamaged: an entry is missing, or continues another one.
    """
    expected = ""
    for n, entry in enumerate(entries, after + 1):
        if entry.n != n:
            raise JournalDamaged(f"thread {thread_id!r}: entry {n} is missing", thread_id=thread_id, n=n)
        if entry.parent != expected and (expected or n == 1):
            raise JournalDamaged(
                f"thread {thread_id!r}: entry {n} does not continue entry {n - 1}", thread_id=thread_id, n=n
            )
        expected = entry.id
