"""States of a thread: folded when they are asked for, from the nearest one that is known."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from attrs import frozen

from locus.core.errors import JournalError
from locus.core.journal import BLANK, Fold, Transition
from locus.core.state import AgentState
from locus.journal import JournalStore
from locus_plugin_viewer.journal import read_some
from locus_plugin_viewer.text import cut, hide_secrets, to_plain

#: What every transition changes.
_CLOCK: Final = frozenset({"updated_at", "active_seconds"})

__all__ = ["Line", "StateReader", "diff_states"]

#: Entries that are folded at a time, and states that are kept.
_PAGE, _KEPT = 512, 8

#: A long sequence is compared by what was added to it: the fields of a state that only grow.
_GROWING: Final = ("messages", "tool_executions", "reasoning_steps", "confidence_history", "tool_history", "errors")


class StateReader:
    """Gives the state after an entry; keeps a few of the newest that were asked for.

    Args:
        store: where the threads are kept.
    """

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, int], AgentState] = OrderedDict()

    async def at(self, thread_id: str, n: int) -> AgentState:
        """The state after the first ``n`` entries of a thread.

        Raises:
            JournalError: the thread has fewer entries.
        """
        known = max((at for name, at in self._kept if name == thread_id and at <= n), default=0)
        state = self._kept[thread_id, known] if known else BLANK
        if n - known > _PAGE:
            known, state = await self._newest_snapshot(thread_id, n, known, state)
        fold = Fold(state)
        while known < n:
            page = await read_some(self._store, thread_id, known, min(_PAGE, n - known))
            if not page:
                raise JournalError(f"thread {thread_id!r} has {known} entries, and entry {n} was asked for")
            for entry in page:
                if isinstance(entry.body, Transition):
                    fold.add(entry.body.delta)
            known = page[-1].n
        state = fold.state()
        self._keep((thread_id, n), state)
        return state

    async def _newest_snapshot(self, thread_id: str, n: int, known: int, state: AgentState) -> tuple[int, AgentState]:
        """What the store has cached, where that is nearer than what is known here."""
        found = await self._store.peek(thread_id)
        if found is not None and found.snapshot is not None and known < found.snapshot.at <= n:
            return found.snapshot.at, found.snapshot.state
        return known, state

    def _keep(self, key: tuple[str, int], state: AgentState) -> None:
        self._kept[key] = state
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


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
