"""`History`: what happened on a thread, transition by transition, read from its journal alone.

Every transition says what it changed, so one pass over the entries gives nodes, times and spending; a state is folded
when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

from attrs import field, frozen

from locus.core.errors import JournalError, NothingToResume
from locus.core.executions import ToolExecution
from locus.core.journal import BLANK, END, START, TOTALS, Body, Entry, Outcome, StateDelta, Transition, apply
from locus.core.messages import Message, Usage

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal.store import JournalStore

#: The fields of a state that an entry of the history has without folding it.
_READ = ("iteration", "updated_at", *TOTALS)

#: A folded state is kept for every so many transitions, so that going back is cheap and memory stays linear.
_KEPT_EVERY = 64


class _Fold:
    """The states of a thread; each is folded from the nearest one that is known."""

    __slots__ = ("_changes", "_kept", "_last")

    def __init__(self, changes: Sequence[StateDelta]) -> None:
        self._changes = changes
        # The states after 0, 64, 128, ... transitions, as far as they were asked for.
        self._kept: list[AgentState] = [BLANK]
        self._last = (0, BLANK)

    def __call__(self, n: int) -> AgentState:
        """The state after ``n`` transitions."""
        near = min(n // _KEPT_EVERY, len(self._kept) - 1)
        known, state = near * _KEPT_EVERY, self._kept[near]
        if known < self._last[0] <= n:
            known, state = self._last
        for at in range(known, n):
            state = apply(state, self._changes[at])
            if (at + 1) == len(self._kept) * _KEPT_EVERY:
                self._kept.append(state)
        self._last = (n, state)
        return state


@frozen(kw_only=True)
class HistoryEntry:
    """One transition of a thread.

    Args:
        n: its number on the thread, from 1; what ``state_at`` and ``fork(at=...)`` take.
        entry: the number of its entry in the journal.
        run_id: the run that made it.
        segment: which call of ``run`` or ``resume`` made it, from 0 in each run.
        node: the node that finished; ``"start"`` for a new turn, ``"fork"`` where a fork goes its own way.
        next_node: the node that follows, or ``"end"``.
        why: why that one follows; for the last two the reason the run ended.
        satisfied: the leaves of the condition that ended the run.
        error: what ended the run, when an error did.
        at: when it was committed, UTC.
        iteration: 0-based index of the iteration that the node belonged to.
        messages: what it added to the conversation.
        calls: the tool calls that it ran, with their results.
        children: the threads of the child runs that those calls finished.
        usage: tokens and dollars that it spent.
        so_far: the same for the thread up to here, earlier runs included.
    """

    n: int
    entry: int
    run_id: str
    segment: int
    node: str
    next_node: str
    why: str
    satisfied: tuple[str, ...]
    error: str | None
    at: datetime
    iteration: int
    messages: tuple[Message, ...] = field(repr=False)
    calls: tuple[ToolExecution, ...] = field(repr=False)
    children: tuple[str, ...] = ()
    usage: Usage
    so_far: Usage = field(repr=False)
    _fold: _Fold = field(eq=False, repr=False, alias="fold")

    @property
    def state(self) -> AgentState:
        """The state that it committed, folded now."""
        return self._fold(self.n)


@frozen
class History(Sequence[HistoryEntry]):
    """The transitions of a thread, oldest first; ``history[0].n == 1``.

    Args:
        thread_id: the thread.
        entries: its transitions.
        pending: what the journal holds of the node under way: steps, questions, answers, pauses.
    """

    thread_id: str
    entries: tuple[HistoryEntry, ...] = field(repr=False)
    pending: tuple[Body, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, thread_id: str, entries: Iterable[Entry]) -> History:
        """The history in the journal entries of a thread."""
        changes: list[StateDelta] = []
        fold = _Fold(changes)
        found: list[HistoryEntry] = []
        pending: list[Body] = []
        now = {name: getattr(BLANK, name) for name in _READ}
        so_far = Usage()
        for entry in entries:
            body = entry.body
            if type(body) is not Transition:
                pending.append(body)
                continue
            before, now = now, {name: body.delta.changed.get(name, now[name]) for name in _READ}
            began = body.node == START
            # Terminate belongs to the iteration before it, also where that was finished.
            finished = body.iteration_finished and body.next_node == END
            # A new run counts from nothing, and what a state that it was given has spent was spent elsewhere.
            usage = Usage() if began else _usage(now) - _usage(before)
            so_far += usage
            changes.append(body.delta)
            found.append(
                HistoryEntry(
                    n=len(changes),
                    entry=entry.n,
                    run_id=body.run_id,
                    segment=body.segment,
                    node=str(body.node),
                    next_node=str(body.next_node),
                    why=body.why,
                    satisfied=body.satisfied,
                    error=body.error,
                    at=now["updated_at"],
                    iteration=(now if began else before)["iteration"] - finished,
                    messages=_additions(body.delta, "messages"),
                    calls=_additions(body.delta, "tool_executions"),
                    children=_children(pending, body.run_id),
                    usage=usage,
                    so_far=so_far,
                    fold=fold,
                )
            )
            pending = []
        return cls(thread_id, tuple(found), tuple(pending))

    @overload
    def __getitem__(self, index: int) -> HistoryEntry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[HistoryEntry, ...]: ...
    def __getitem__(self, index: int | slice) -> HistoryEntry | tuple[HistoryEntry, ...]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self.entries)

    def at(self, n: int) -> HistoryEntry:
        """The transition of that number.

        Raises:
            JournalError: the transition does not exist.
        """
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= len(self.entries):
            have = f"it has the transitions 1 to {len(self.entries)}" if self.entries else "none was committed yet"
            raise JournalError(f"thread {self.thread_id!r} has no transition {n!r}; {have}")
        return self.entries[n - 1]

    @property
    def state(self) -> AgentState:
        """The state as it was committed last.

        Raises:
            JournalError: no transition was committed.
        """
        return self.at(len(self.entries)).state

    @property
    def usage(self) -> Usage:
        """Tokens and dollars of the whole thread."""
        return self.entries[-1].so_far if self.entries else Usage()

    @property
    def open_node(self) -> str | None:
        """The node where the unfinished run goes on, or None when it has ended."""
        if not self.entries or self.entries[-1].next_node == END:
            return None
        return self.entries[-1].next_node

    @property
    def runs(self) -> tuple[tuple[HistoryEntry, ...], ...]:
        """The transitions by run: one run for each user turn, what it was forked from included."""
        starts = [i for i, entry in enumerate(self.entries) if entry.node == START]
        return tuple(self.entries[a:b] for a, b in pairwise([*starts, len(self.entries)]))


def _additions(change: StateDelta, name: str) -> tuple[Any, ...]:
    grown = change.grown.get(name)
    return grown[1] if grown is not None else ()


def _usage(now: dict[str, Any]) -> Usage:
    return Usage(
        prompt_tokens=now["prompt_tokens_used"],
        completion_tokens=now["completion_tokens_used"],
        cached_tokens=now["cached_tokens_used"],
        estimated_tokens=now["estimated_tokens_used"],
        cost=now["cost"] or None,
    )


def _children(steps: Iterable[Body], run_id: str) -> tuple[str, ...]:
    # What a child run spent is recorded with its thread, in a value of an upper layer; no other value has one.
    values = [b.value for b in steps if isinstance(b, Outcome) and b.run_id == run_id]
    names = (getattr(value, "thread_id", None) for value in values)
    return tuple(name for name in names if isinstance(name, str) and name)


async def read_entries(store: JournalStore, thread_id: str) -> tuple[Entry, ...]:
    """Everything that a thread's journal holds.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    if not store.keeps_history:
        raise JournalError(
            f"thread {thread_id!r}: {type(store).__name__} keeps the newest state of a thread and no history; "
            "give the agent a checkpointer that does, such as MemoryStore()"
        )
    entries = await store.read(thread_id)
    if not entries:
        raise NothingToResume(f"thread {thread_id!r} does not exist in this {type(store).__name__}")
    return entries


async def read_history(store: JournalStore, thread_id: str) -> History:
    """What happened on a thread.

    Args:
        store: where its journal is kept.
        thread_id: the thread; a run may hold it meanwhile.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    return History.of(thread_id, await read_entries(store, thread_id))
