"""What a thread is doing, told from its newest state and the few entries behind it.

Only the totals of several runs need the journal before that: who wants them says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from attrs import frozen

from locus.core.errors import LocusError
from locus.core.journal import END, FORK, Asked, Paused
from locus.core.messages import Usage
from locus.journal import History, JournalHost, JournalStore, ThreadInfo
from locus_plugin_cli.remembered import KEY
from locus_plugin_cli.text import clock, one_line

__all__ = ["Overview", "is_child", "overview", "resumable"]

Status = Literal["running", "waiting", "crashed", "cancelled", "dead", "forked", "ended", "empty", "unreadable"]

#: How the kernel names the thread of a child run: its parent, the beginning of the parent's run id, the step.
_CHILD = re.compile(r".+/[0-9a-f-]{8}/\d+/\w+/.+", re.DOTALL)


#: What the runs before the first one did.
_NOTHING = (0, Usage())


@frozen(kw_only=True)
class Overview:
    """One thread at a glance.

    Args:
        thread_id: the thread.
        status: ``"crashed"``, ``"cancelled"`` and ``"forked"`` threads have an open run that can be resumed,
            ``"dead"`` ones one that was set aside because it killed its workers, ``"waiting"`` ones one that asks a
            person; ``"empty"`` ones were named and never written to.
        detail: who runs it, what it asks, why it ended or was set aside, what cannot be read.
        since: when its holder took it, where the store knows.
        updated_at: when it was changed last.
        head: number of its newest entry.
        iterations: of all its runs, or of the newest, see `overview`.
        usage: tokens and dollars of the same.
        questions: the open ones.
        own: it was begun by this command.
    """

    thread_id: str
    status: Status
    detail: str = ""
    since: datetime | None = None
    updated_at: datetime | None = None
    head: int = 0
    iterations: int = 0
    usage: Usage = Usage()
    questions: tuple[Asked, ...] = ()
    own: bool = False

    @property
    def resumable(self) -> bool:
        """Whether ``resume`` goes on with it."""
        return self.status in ("waiting", "crashed", "cancelled", "dead", "forked")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "thread_id": self.thread_id,
            "status": self.status,
            "detail": self.detail,
            "resumable": self.resumable,
            "since": _iso(self.since),
            "updated_at": _iso(self.updated_at),
            "iterations": self.iterations,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "cached_tokens": self.usage.cached_tokens,
            "total_tokens": self.usage.total_tokens,
            "cost": self.usage.cost,
            "questions": [
                {"id": q.interrupt_id, "question": q.question, "options": list(q.options)} for q in self.questions
            ],
        }

    def __str__(self) -> str:
        match self.status:
            case "running":
                since = f" since {clock(self.since)}" if self.since is not None else ""
                return f"running: {one_line(self.detail)}{since}"
            case "waiting":
                return f"waits for an answer: {one_line(self.detail)}"
            case "crashed":
                return "stopped in the middle, can be resumed"
            case "cancelled":
                why = one_line(self.detail)
                return f"{why[:1].lower()}{why[1:]}, can be resumed" if why else "cancelled, can be resumed"
            case "dead":
                return f"set aside: {one_line(self.detail)}, can be resumed"
            case "forked":
                return f"{one_line(self.detail)}, can be resumed"
            case "ended":
                return f"ended: {one_line(self.detail)}"
            case "unreadable":
                return f"cannot be read: {one_line(self.detail)}"
            case "empty":
                return "empty"


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


async def overview(store: JournalStore, info: ThreadInfo, *, whole: bool = False) -> Overview:
    """A thread at a glance; one that cannot be read says so, and takes no other with it.

    Args:
        store: where it is kept.
        info: what the store's list says of it.
        whole: iterations and spending are those of all runs, for a store that keeps history; else of the newest.
    """
    told: dict[str, Any] = {
        "thread_id": info.thread_id,
        "updated_at": info.updated_at,
        "head": info.head,
        "since": info.since,
    }
    try:
        host = await JournalHost.peek(store, info.thread_id)
        earlier = await _earlier(store, host) if whole and host is not None and store.keeps_history else _NOTHING
    except LocusError as e:
        return Overview(status="unreadable", detail=str(e), **told)
    if host is None or host.last is None:
        held = info.holder is not None
        return Overview(status="running" if held else "empty", detail=info.holder or "", **told)
    state, questions = host.state, tuple(host.open_questions.values())
    status, detail = _status(host, info.holder, questions)
    return Overview(
        status=status,
        detail=detail,
        iterations=earlier[0] + state.iteration + 1,
        usage=earlier[1] + state.usage,
        questions=questions,
        own=KEY in state.metadata,
        **told,
    )


async def _earlier(store: JournalStore, host: JournalHost) -> tuple[int, Usage]:
    """Iterations and spending of the runs before the newest."""
    claim = host.claim
    # Without a cached fold, what a claim shows is all that there is.
    entries = claim.entries if claim.snapshot is None else await store.read(claim.thread_id)
    *before, newest = History.of(claim.thread_id, entries).runs or ((),)
    if not before:
        return _NOTHING
    iterations = sum(max(moment.iteration for moment in run) + 1 for run in before)
    return iterations, newest[0].so_far - newest[0].usage


def _status(host: JournalHost, holder: str | None, questions: Sequence[Asked]) -> tuple[Status, str]:
    if holder is not None:
        return "running", holder
    last = host.last
    assert last is not None
    if last.next_node == END:
        return "ended", last.why if last.error is None else f"{last.why}, {last.error}"
    if questions:
        return "waiting", "; ".join(q.question for q in questions)
    newest = host.claim.entries[-1].body if host.claim.entries else last
    if isinstance(newest, Paused):
        if newest.kind == "dead_letter":
            return "dead", newest.reason
        # Answered, but nobody went on: then it is ready to.
        if newest.kind == "interrupted":
            return "crashed", ""
        return "cancelled", f"Cancelled: {newest.reason}" if newest.reason else "Cancelled"
    if newest is last and last.node == FORK:
        return "forked", last.why
    return "crashed", ""


def is_child(thread_id: str) -> bool:
    """Whether a thread is that of a child run, which goes on with its parent."""
    return _CHILD.fullmatch(thread_id) is not None


async def resumable(store: JournalStore, *, answered: bool) -> str | None:
    """The newest thread that can be resumed, or None.

    Args:
        store: where to look.
        answered: there is an answer: the newest that waits for one.
    """
    waiting = None
    for info in await store.threads():
        if info.holder is not None or not info.head or is_child(info.thread_id):
            continue
        found = await overview(store, info)
        if not found.resumable or found.status == "dead":
            continue  # what kills its workers is for whoever names it
        if found.status == "waiting":
            if answered:
                return found.thread_id
            waiting = waiting or found.thread_id
        elif not answered:
            return found.thread_id
    return waiting
