"""What a page may change: an answer, a cancel, a fork, and going on with a run.

What reaches a run in another process is a signal in the store, as `locus runs answer` leaves it. Where the agent is
known and no process has the run, it goes on in this one.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from locus.core import has_all_of
from locus.core.errors import InputError, InterruptMismatch, JournalError, NothingToResume
from locus.core.journal import Answered, Asked, Cancelled, Transition
from locus.journal import JournalHost, QueueStore, Signal
from locus.plugin import Lazy
from locus_plugin_viewer.journal import read_some
from locus_plugin_viewer.listing import find_thread
from locus_plugin_viewer.queries import read_form, read_number
from locus_plugin_viewer.rendering import url
from locus_plugin_viewer.viewer import Viewer

__all__ = ["Actions"]

_timetravel: Any = Lazy("locus.timetravel")

#: Entries that are read at a time to count transitions.
_PAGE = 512


class Actions:
    """Answers what changes something.

    Args:
        viewer: what the pages are about.
    """

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    async def answer(self, request: Request) -> Response:
        """Answer an open question."""
        form = await read_form(request)
        thread_id, host = await self._host(form)
        question, said = form.get("question", ""), form.get("answer", "")
        asked = host.open_questions.get(question)
        if asked is None:
            raise InterruptMismatch(f"question {question!r} is not open any more")
        _check(asked, said)
        if self._viewer.agent is not None and len(host.open_questions) == 1:
            self._viewer.resume(thread_id, {question: said})
            return _to_thread(thread_id)
        body = Answered(run_id=host.run_id, interrupt_id=question, answer=said)
        if not await self._signal(thread_id, Signal(body=body, id=f"answer {host.run_id} {question}")):
            raise InterruptMismatch(f"question {question!r} was answered before")
        if self._viewer.agent is not None and not await self._find_unanswered(thread_id, host):
            self._viewer.resume(thread_id)  # it reads the answers that were left
        return _to_thread(thread_id)

    async def cancel(self, request: Request) -> Response:
        """End a run at its next safe point, in whichever process it is."""
        form = await read_form(request)
        thread_id, host = await self._host(form)
        if host.last is not None and host.open_node is None:
            raise NothingToResume(f"the run of {thread_id!r} has ended")
        body = Cancelled(run_id=host.run_id, reason=form.get("reason", ""))
        await self._signal(thread_id, Signal(body=body, id=f"cancel {uuid4().hex}"))
        info = await find_thread(self._viewer.store, thread_id, host.claim.head)
        if self._viewer.agent is not None and info.holder is None:
            self._viewer.resume(thread_id)  # no process has it, so it ends in this one
        return _to_thread(thread_id)

    async def resume(self, request: Request) -> Response:
        """Go on with an open run in this process."""
        form = await read_form(request)
        thread_id, _ = await self._host(form)
        self._viewer.resume(thread_id)
        return _to_thread(thread_id)

    async def fork(self, request: Request) -> Response:
        """Another thread that begins with what this one did up to an entry."""
        form = await read_form(request)
        thread_id = form.get("id", "")
        at = await self._count_transitions(thread_id, read_number("n", form.get("n", "")))
        made = await _timetravel.fork(self._viewer.source, thread_id, at=at)
        return _to_thread(made)

    async def _count_transitions(self, thread_id: str, n: int) -> int:
        """How many transitions the first ``n`` entries have; time travel counts by these."""
        found = after = 0
        while after < n and (page := await read_some(self._viewer.store, thread_id, after, min(_PAGE, n - after))):
            found += sum(isinstance(entry.body, Transition) for entry in page)
            after = page[-1].n
        if not found:
            raise JournalError(f"thread {thread_id!r} has no transition up to entry {n}")
        return found

    async def _find_unanswered(self, thread_id: str, host: JournalHost) -> set[str]:
        """The open questions to which no answer was left, either."""
        store: Any = self._viewer.store
        bodies = [signal.body for signal in await store.signals(thread_id)]
        return set(host.open_questions) - {body.interrupt_id for body in bodies if isinstance(body, Answered)}

    async def _host(self, form: dict[str, str]) -> tuple[str, JournalHost]:
        thread_id = form.get("id", "")
        host = await JournalHost.peek(self._viewer.store, thread_id) if thread_id else None
        if host is None:
            raise NothingToResume(f"thread {thread_id!r} does not exist in {self._viewer.name}")
        return thread_id, host

    async def _signal(self, thread_id: str, signal: Signal) -> bool:
        store: Any = self._viewer.store
        if not has_all_of(store, QueueStore):
            raise InputError(f"{self._viewer.name} keeps no signals, so a run in another process cannot be reached")
        return bool(await store.signal(thread_id, signal))


def _check(asked: Asked, said: str) -> None:
    labels = [str(option) for option in asked.options]
    if labels and said not in labels:
        raise InterruptMismatch(f"{said!r} is not an answer to {asked.question!r}; choose one of {', '.join(labels)}")


def _to_thread(thread_id: str) -> Response:
    return RedirectResponse(str(url("/thread", id=thread_id).unescape()), 303)
