"""The list of threads: a page of it, with what each newest run has spent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

from attrs import evolve, frozen

from locus.core.errors import JournalDamaged, JournalError, LocusError, StoreError
from locus.core.journal import BLANK, TOTALS, Transition
from locus.core.messages import Usage
from locus.journal import JournalHost, JournalStore, ThreadInfo, ThreadQuery, ThreadStatus
from locus.journal.listing import OPEN, about, parent_thread, progress, status_of
from locus_plugin_viewer.journal import find_boundary, read_some
from locus_plugin_viewer.text import format_usage

__all__ = ["STATUSES", "Filters", "Listing", "Row", "find_thread", "list_threads"]

#: Threads of a listing that are looked at for one of them: those that changed last, and those that are open.
_RECENT, _OPEN = 100, 200

#: Threads on a page, and the entries of each that are read for what it has spent.
_PAGE, _NEWEST = 25, 12

#: The statuses that a list may be limited to.
STATUSES: Final[tuple[ThreadStatus, ...]] = get_args(ThreadStatus)

#: Threads of this prefix are how workers say that they live: they are not conversations.
_PRESENCE: Final = "locus.worker/"


@frozen(kw_only=True)
class Filters:
    """Which threads are listed.

    Args:
        text: words that all must be in the id, the title, the agent's name, the model, or the metadata.
        said: look for them in what was said as well, for which each thread is read.
        status: a status, or ``""`` for all.
        agent: the name of an agent, or ``""`` for all.
        days: those that changed in so many days; 0 = all.
        children: the threads of child runs, too.
        after: the last thread of the page before, or ``""``.
    """

    text: str = ""
    said: bool = False
    status: str = ""
    agent: str = ""
    days: int = 0
    children: bool = False
    after: str = ""


@frozen(kw_only=True)
class Row:
    """A thread of the list: what the store says of it, and what its newest run has spent, as text."""

    info: ThreadInfo
    parent: str | None = None
    spent: str = ""


@frozen(kw_only=True)
class Listing:
    """A page of the list.

    Args:
        rows: the threads, the most recently changed first.
        more: the thread behind which the next page begins, or ``""`` for the last page.
    """

    rows: tuple[Row, ...]
    more: str = ""


async def list_threads(store: JournalStore, filters: Filters) -> Listing:
    """A page of the threads.

    Raises:
        JournalError: the store does not record what is asked for, or the thread before the page is gone.
        StoreError: the store cannot be used.
    """
    chosen: list[ThreadInfo] = []
    after: str | None = filters.after or None
    # One more than is shown: it says whether there is another page.
    while len(chosen) <= _PAGE:
        page = await _read_page(store, filters, after)
        chosen += [info for info in page if _is_wanted(info, filters) and await _has_words(store, info, filters)]
        if not page or len(page) < _limit(filters):
            break
        after = page[-1].thread_id
    rows = [await _row(store, info) for info in chosen[:_PAGE]]
    more = chosen[_PAGE - 1].thread_id if len(chosen) > _PAGE else ""
    return Listing(rows=tuple(rows), more=more)


def _limit(filters: Filters) -> int:
    # Words are looked for here, so that many threads are read at a time.
    return 2_000 if filters.text and not filters.said else 2 * _PAGE


async def _read_page(store: JournalStore, filters: Filters, after: str | None) -> Sequence[ThreadInfo]:
    query = ThreadQuery(
        status=[status for status in STATUSES if status == filters.status],
        agent_id=filters.agent or None,
        limit=_limit(filters),
        after=after,
    )
    return await store.threads(query)


def _is_wanted(info: ThreadInfo, filters: Filters) -> bool:
    if not info.head or info.thread_id.startswith(_PRESENCE):
        return False
    if not filters.children and parent_thread(info.thread_id) is not None:
        return False
    if not filters.days or info.updated_at is None:
        return True
    return info.updated_at >= datetime.now(UTC) - timedelta(filters.days)


async def _has_words(store: JournalStore, info: ThreadInfo, filters: Filters) -> bool:
    """Whether a thread has all words: in what the listing says of it, or, where that is asked for, in what was said."""
    parts = (info.thread_id, info.title, info.agent_id, info.model, *map(str, info.metadata.values()))
    known = "\n".join(parts).casefold()
    missing = [word for word in filters.text.casefold().split() if word not in known]
    if not missing or not filters.said:
        return not missing
    try:
        host = await JournalHost.peek(store, info.thread_id)
    except LocusError as e:
        if isinstance(e, StoreError) and not isinstance(e, JournalDamaged):
            raise  # the store cannot be used, so that no thread is found
        return False  # one thread that cannot be read, or is damaged
    said = "" if host is None else "\n".join(each.text for each in host.state.messages).casefold()
    return all(word in said for word in missing)


async def _row(store: JournalStore, info: ThreadInfo) -> Row:
    parent = parent_thread(info.thread_id)
    if not store.keeps_history:
        return Row(info=info, parent=parent)
    try:
        newest = await store.read(info.thread_id, max(0, info.head - _NEWEST))
    except LocusError:  # one thread that cannot be read is listed like the others
        return Row(info=info, parent=parent)
    found: dict[str, Any] = {}
    for entry in newest:
        if isinstance(entry.body, Transition):
            changed = entry.body.delta.changed
            found.update({name: changed[name] for name in TOTALS if name in changed})
    spent: Usage = evolve(BLANK, **found).usage
    return Row(info=info, parent=parent, spent=format_usage(spent))


async def find_thread(store: JournalStore, thread_id: str, head: int) -> ThreadInfo:
    """What is known of one thread.

    A listing costs what the store has, so only its beginning is asked, with the threads that changed last. For a thread
    behind that the journal says the same, but when it was begun and what it is a fork of; whether a worker holds an
    open run, the listing of those says.

    Args:
        store: where the thread is kept.
        thread_id: the thread.
        head: the number of its newest entry.

    Raises:
        StoreError: the store cannot be used.
    """
    listed = await _find_listed(store, thread_id, ThreadQuery(limit=_RECENT))
    if listed is not None:
        return listed
    bodies = [entry.body for entry in await read_some(store, thread_id, 0, 2)]
    boundary = await find_boundary(store, thread_id, head)
    newest = await read_some(store, thread_id, max(0, boundary - 3), head)
    known = about((*bodies, *(entry.body for entry in newest)))
    found = progress([entry.body for entry in newest])
    if found.status == OPEN:
        listed = await _find_listed(store, thread_id, ThreadQuery(status=("running", "crashed"), limit=_OPEN))
        if listed is not None:
            return listed
    last = next((e.body for e in reversed(newest) if isinstance(e.body, Transition)), None)
    return ThreadInfo(
        thread_id=thread_id,
        head=head,
        status=status_of(found.status, is_held=False),
        node=found.node,
        title=known.title,
        model=known.model,
        agent_id=known.agent_id,
        updated_at=None if last is None else last.delta.changed.get("updated_at"),
    )


async def _find_listed(store: JournalStore, thread_id: str, query: ThreadQuery) -> ThreadInfo | None:
    with suppress(JournalError):  # the store does not record how threads are
        return next((info for info in await store.threads(query) if info.thread_id == thread_id), None)
    return None
