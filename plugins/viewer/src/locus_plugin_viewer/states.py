"""States of a thread: folded when they are asked for, from the nearest one that is known."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from difflib import SequenceMatcher
from operator import itemgetter
from typing import Any, Final, Protocol, runtime_checkable

from attrs import frozen

from locus.core.errors import JournalError
from locus.core.journal import BLANK, Fold, Transition
from locus.core.state import AgentState
from locus.journal import JournalStore
from locus_plugin_viewer.journal import read_some
from locus_plugin_viewer.text import cut, hide_secrets, pretty, to_plain

#: What every transition changes.
_CLOCK: Final = frozenset({"updated_at", "active_seconds"})

__all__ = ["Line", "StateReader", "describe_state", "diff_states"]

#: Entries that are folded at a time, states that are kept, and entries between those that are kept on the way.
_PAGE, _KEPT, _STRIDE = 512, 4, 4_096

#: Items of a long sequence that are shown of a state.
_SHOWN = 5

#: A long sequence is compared by what was added to it: the fields of a state that only grow.
_GROWING: Final = ("messages", "tool_executions", "reasoning_steps", "confidence_history", "tool_history", "errors")


@runtime_checkable
class _StoreWithStates(Protocol):
    async def state_at(self, thread_id: str, n: int) -> AgentState | None: ...


class StateReader:
    """Gives the state after an entry.

    It is folded from a state that is known: one that was asked for before, one that was passed on the way to that, or
    one that the store has cached. A store with ``state_at`` gives it itself, at the cost of the state.

    Args:
        store: where the threads are kept.
    """

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        #: The newest that were asked for. What is folded from a state shares its messages with it.
        self._kept: OrderedDict[tuple[str, int], AgentState] = OrderedDict()
        #: Thread -> the states on the way to one that was folded from far behind; of one thread, which is long.
        self._passed: dict[str, dict[int, AgentState]] = {}

    async def at(self, thread_id: str, n: int) -> AgentState:
        """The state after the first ``n`` entries of a thread.

        Raises:
            JournalError: the thread has fewer entries.
        """
        known, state = self._nearest(thread_id, n)
        if n - known > _PAGE:
            known, state = await self._ask_store(thread_id, n, known, state)
        fold, begun = Fold(state), known
        while known < n:
            page = await read_some(self._store, thread_id, known, min(_PAGE, n - known))
            if not page:
                raise JournalError(f"thread {thread_id!r} has {known} entries, and entry {n} was asked for")
            for entry in page:
                if isinstance(entry.body, Transition):
                    fold.add(entry.body.delta)
            known = page[-1].n
            if known - begun >= _STRIDE:
                state, begun = fold.state(), known
                fold = Fold(state)
                self._passed = {thread_id: {**self._passed.get(thread_id, {}), known: state}}
        state = fold.state()
        self._keep((thread_id, n), state)
        return state

    def _nearest(self, thread_id: str, n: int) -> tuple[int, AgentState]:
        """The nearest state before an entry that is known here: how many entries made it, and the state."""
        found = {at: state for (name, at), state in self._kept.items() if name == thread_id and at <= n}
        found |= {at: state for at, state in self._passed.get(thread_id, {}).items() if at <= n}
        return max(found.items(), key=itemgetter(0), default=(0, BLANK))

    async def _ask_store(self, thread_id: str, n: int, known: int, state: AgentState) -> tuple[int, AgentState]:
        """What the store can give, where that is nearer than what is known here."""
        if isinstance(self._store, _StoreWithStates):
            found = await self._store.state_at(thread_id, n)
            return (known, state) if found is None else (n, found)
        claim = await self._store.peek(thread_id)
        if claim is not None and claim.snapshot is not None and known < claim.snapshot.at <= n:
            return claim.snapshot.at, claim.snapshot.state
        return known, state

    def _keep(self, key: tuple[str, int], state: AgentState) -> None:
        self._kept[key] = state
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


def describe_state(state: AgentState) -> str:
    """A state without the conversation, as JSON; of what grows, the newest items."""
    shown: dict[str, Any] = {}
    for name, value in vars(state).items():
        if name.startswith("_") or name == "messages":
            continue
        left_out = len(value) - _SHOWN if name in _GROWING else 0
        shown[name] = (f"{left_out:,} earlier", *value[-_SHOWN:]) if left_out > 0 else value
    return cut(pretty(shown), 20_000)


@frozen
class Line:
    """A line of a comparison: ``sign`` is ``"+"``, ``"-"``, or ``" "`` for a heading."""

    sign: str
    text: str


def diff_states(before: AgentState, after: AgentState) -> Iterator[Line]:
    """What changed from one state to another, field by field."""
    for name, new in vars(after).items():
        old = getattr(before, name)
        if name.startswith("_") or name in _CLOCK or old is new or old == new:
            continue
        yield Line(" ", name)
        if name in _GROWING:
            yield from _diff_items(old, new)
        else:
            yield from _diff_values(old, new)


def _diff_items(old: tuple[Any, ...], new: tuple[Any, ...]) -> Iterator[Line]:
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    if same:
        yield Line(" ", f"  {same:,} as before")
    yield from (Line("-", each) for item in old[same:] for each in _lines(item))
    yield from (Line("+", each) for item in new[same:] for each in _lines(item))


def _diff_values(old: Any, new: Any) -> Iterator[Line]:
    a, b = _lines(old), _lines(new)
    for what, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        yield from (Line("-", each) for each in a[i:j])
        yield from (Line("+", each) for each in b[k:m])


def _lines(value: Any) -> list[str]:
    text = json.dumps(hide_secrets(to_plain(value)), indent=2, ensure_ascii=False)
    return [f"  {line}" for line in cut(text, 4_000).splitlines()]
