"""What a listing says about a thread, read from its entries: how its newest run is, its title, model and metadata.

Pure functions over a few entries, so that a store can keep the answers beside each append instead of folding a thread.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from locus.core.errors import JournalError
from locus.core.events import Ending
from locus.core.frozen import frozen
from locus.core.journal import END, FORK, START, Body, Outcome, Paused, Resumed, Submitted, Transition
from locus.core.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from locus.core.messages import Message
    from locus.core.state import AgentState
    from locus.journal.store import ThreadInfo, ThreadQuery, ThreadStatus

__all__ = [
    "NEW",
    "OPEN",
    "QUEUE",
    "About",
    "Progress",
    "about",
    "about_state",
    "page",
    "parent_thread",
    "progress",
    "progress_of_fork",
    "status_of",
    "unknown_page",
]

#: Characters of a title, and of a text in the metadata of a listing.
_TITLE, _TEXT = 80, 200

#: The entry of a listing's metadata: the queue that the newest turn was submitted to.
QUEUE = "locus.queue"

#: The thread of a child run: its parent's thread, the beginning of the parent's run id, the step.
_CHILD = r"(.+)/[0-9a-f-]{8}/\d+/\w+/.+"

#: The kind of a pause -> the status of a thread that is not held; of any other kind: ``"paused"``.
_PAUSES = {"interrupted": "waiting", "dead_letter": "dead_letter"}

#: The status of a run that is open; whether it runs or has crashed depends on whether a worker holds the thread.
OPEN = "open"


@frozen
class Progress:
    """How far a thread's newest run is.

    Args:
        status: `OPEN`, or the status of a thread that is not held.
        node: the node that follows.
    """

    status: str = "new"
    node: str = ""


NEW = Progress()


def progress(bodies: Sequence[Body], before: Progress = NEW) -> Progress:
    """How far the newest run is after some more entries.

    Args:
        bodies: the entries, oldest first; those of a whole thread, or those after ``before``.
        before: how far it was before them.
    """
    status = ""
    for body in reversed(bodies):
        kind = type(body)
        if kind is Transition:
            return Progress(status or _of(body), body.next_node)  # type: ignore[arg-type, union-attr]
        if not status and kind is Paused:
            status = _PAUSES.get(body.kind, "paused")  # type: ignore[union-attr]
        elif not status and kind is Resumed:
            status = OPEN
        elif not status and kind is Submitted:
            status = "queued"
    return Progress(status or before.status, before.node)


def _of(transition: Transition) -> str:
    if transition.next_node == END:
        failed = transition.error is not None or Ending(transition.why, transition.satisfied).is_failure
        return "failed" if failed else "ended"
    return "paused" if transition.node == FORK else OPEN


def progress_of_fork(shared: Progress) -> Progress:
    """How far a fork is before it has entries of its own: no process worked on its run, so that did not crash."""
    return Progress("paused", shared.node) if shared.status == OPEN else shared


def status_of(found: str, *, is_held: bool) -> ThreadStatus:
    """The status of a thread, from that of its newest run."""
    if is_held:
        return "running"
    status: ThreadStatus = "crashed" if found == OPEN else found  # type: ignore[assignment]
    return status


@frozen
class About:
    """What a thread is about; what is not known is empty."""

    title: str = ""
    model: str = ""
    agent_id: str = ""
    metadata: Mapping[str, Any] = field(factory=dict)


_NOTHING = About()


def about(bodies: Iterable[Body], before: About = _NOTHING) -> About:
    """What a thread is about after some more entries: the very same value where they say nothing new.

    Args:
        bodies: the entries, oldest first.
        before: what it was about before them.
    """
    found = before
    for body in bodies:
        kind = type(body)
        if kind is Transition and body.node == START:  # type: ignore[union-attr]
            found = _about_start(body, found)  # type: ignore[arg-type]
        elif kind is Submitted:
            metadata = {**found.metadata, QUEUE: body.queue}  # type: ignore[union-attr]
            found = evolve(found, title=found.title or _title([body.prompt]), agent_id=body.agent, metadata=metadata)  # type: ignore[union-attr]
        elif kind is Outcome:
            model = getattr(getattr(body.value, "response", None), "model", "")  # type: ignore[union-attr]
            if model and model != found.model:
                found = evolve(found, model=str(model))
    return found


def _about_start(start: Transition, before: About) -> About:
    title = before.title or _title(start.delta.grown.get("messages", (0, ()))[1])
    changed = start.delta.entries
    metadata = {name: value for name, value in before.metadata.items() if name not in start.delta.dropped}
    metadata = {name: value for name, value in metadata.items() if name not in changed} | _short(changed)
    agent_id = start.delta.changed.get("agent_id", before.agent_id) or ""
    if (title, agent_id, metadata) == (before.title, before.agent_id, before.metadata):
        return before
    return evolve(before, title=title, agent_id=agent_id, metadata=metadata)


def about_state(state: AgentState) -> About:
    """What a thread is about, where its newest state is all that is kept."""
    return About(title=_title(state.messages), agent_id=state.agent_id or "", metadata=_short(state.metadata))


def _title(messages: Iterable[Message]) -> str:
    words = next((" ".join(m.text.split()) for m in messages if m.role is Role.USER and m.text.strip()), "")
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}\u2026"


def _short(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in metadata.items()
        if isinstance(value, bool | int | float | None) or (isinstance(value, str) and len(value) <= _TEXT)
    }


def page(infos: Sequence[ThreadInfo], query: ThreadQuery | None) -> tuple[ThreadInfo, ...]:
    """What a query selects of all the threads of a store.

    Raises:
        JournalError: its ``after`` is not a thread, or the store does not record what it asks for.
    """
    if query is None:
        return tuple(infos)
    if (query.status or query.metadata or query.agent_id is not None) and any(i.status is None for i in infos):
        raise JournalError("this store records neither the status nor the metadata of threads; list them all")
    if query.after is not None:
        at = next((i for i, info in enumerate(infos) if info.thread_id == query.after), None)
        if at is None:
            raise unknown_page(query.after)
        infos = infos[at + 1 :]
    found = [info for info in infos if _selects(query, info)]
    return tuple(found if query.limit is None else found[: query.limit])


def _selects(query: ThreadQuery, info: ThreadInfo) -> bool:
    if query.status and info.status not in query.status:
        return False
    if query.updated_before is not None and (info.updated_at is None or info.updated_at >= query.updated_before):
        return False
    if query.agent_id is not None and info.agent_id != query.agent_id:
        return False
    return all(
        name in info.metadata and type(info.metadata[name]) is type(value) and info.metadata[name] == value
        for name, value in query.metadata.items()
    )


def unknown_page(after: str) -> JournalError:
    """The error for a page behind a thread that does not exist."""
    return JournalError(f"thread {after!r} does not exist, so no list goes on behind it; list from the start")


def parent_thread(thread_id: str) -> str | None:
    """The thread of the run that began a child run, or None for a thread that is not one of a child run."""
    found = re.fullmatch(_CHILD, thread_id, re.DOTALL)
    return None if found is None else found[1]
