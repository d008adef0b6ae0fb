"""The pages that show: the list, a thread, and the parts of it that are read when they are opened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attrs import evolve
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from locus.core import has_all_of
from locus.core.errors import InputError, JournalError
from locus.core.journal import Answered, Transition, entry_to_json
from locus.journal import JournalHost, QueueStore
from locus.journal.listing import parent_thread
from locus_plugin_viewer.blocks import read_blocks
from locus_plugin_viewer.items import Block, QuestionItem
from locus_plugin_viewer.journal import find_boundary, read_after, read_head, read_some, read_window
from locus_plugin_viewer.listing import STATUSES, Filters, find_thread, list_threads
from locus_plugin_viewer.live import Channels
from locus_plugin_viewer.queries import get_id, get_number, read_number
from locus_plugin_viewer.rendering import Pages
from locus_plugin_viewer.requests import read_request
from locus_plugin_viewer.states import describe_state, diff_states
from locus_plugin_viewer.text import clean, hide_secrets, pretty
from locus_plugin_viewer.viewer import Viewer

__all__ = ["Reading"]

#: Days that a list may be limited to: a hundred years, and nowhere near what a calendar has.
_MOST_DAYS = 36_500


def _get_days(request: Request) -> int:
    """Of how many days the threads are that are listed; 0 = of all."""
    days = get_number(request, "days") or 0
    if days > _MOST_DAYS:
        raise InputError(f"days may be {_MOST_DAYS:,} at most, got {days}")
    return days


class Reading:
    """Answers what only reads.

    Args:
        viewer: what the pages are about.
        pages: the templates.
    """

    def __init__(self, viewer: Viewer, pages: Pages) -> None:
        self._viewer, self._pages = viewer, pages
        self.channels = Channels(viewer.store, pages.blocks, lambda: viewer.is_closing)

    async def threads(self, request: Request) -> Response:
        """The list of threads."""
        asked = request.query_params
        status = asked.get("status", "")
        filters = Filters(
            text=asked.get("q", ""),
            said=bool(asked.get("said")),
            status=status if status in STATUSES else "",
            agent=asked.get("agent", ""),
            days=_get_days(request),
            children=bool(asked.get("children")),
            after=asked.get("after", ""),
        )
        listing = await list_threads(self._viewer.store, filters)
        return self._pages.page("threads.html", listing=listing, filters=filters, statuses=STATUSES)

    async def thread(self, request: Request) -> Response:
        """One thread: what is known of it, and a window of its timeline."""
        thread_id = get_id(request)
        window = await read_window(self._viewer.store, thread_id, get_number(request, "window"))
        info = await find_thread(self._viewer.store, thread_id, window.head)
        blocks = read_blocks(window.entries)
        open_questions = await self._open_questions(thread_id, window.head)
        return self._pages.page(
            "thread.html",
            thread_id=thread_id,
            info=info,
            parent=parent_thread(thread_id),
            window=window,
            blocks=blocks,
            questions=open_questions,
            failure=self._viewer.failures.get(thread_id, ""),
        )

    async def window(self, request: Request) -> Response:
        """A window of a timeline, to be put into a page."""
        thread_id = get_id(request)
        window = await read_window(self._viewer.store, thread_id, get_number(request, "window"))
        return self._pages.page("_window.html", thread_id=thread_id, blocks=read_blocks(window.entries), window=window)

    async def status(self, request: Request) -> Response:
        """How a thread is, and what it asks, to be put into a page."""
        thread_id = get_id(request)
        head = await read_head(self._viewer.store, thread_id)
        return self._pages.page(
            "_status.html",
            thread_id=thread_id,
            info=await find_thread(self._viewer.store, thread_id, head),
            questions=await self._open_questions(thread_id, head),
            failure=self._viewer.failures.get(thread_id, ""),
        )

    async def events(self, request: Request) -> Response:
        """What is written to a thread, as server-sent events."""
        thread_id = get_id(request)
        last = request.headers.get("last-event-id", "")
        seen = read_number("last-event-id", last) if last else get_number(request, "after") or 0
        return StreamingResponse(self.channels.follow(thread_id, seen), media_type="text/event-stream")

    async def state(self, request: Request) -> Response:
        """The state before and after a transition, and the agent's condition over it."""
        thread_id, n = get_id(request), get_number(request, "n") or 1
        store, states = self._viewer.store, self._viewer.states
        head = await read_head(store, thread_id)
        if n > head:  # said before anything is read for it
            raise JournalError(f"thread {thread_id!r} has {head} entries, and entry {n} was asked for")
        before = await states.at(thread_id, await find_boundary(store, thread_id, n - 1)) if n > 1 else None
        after = await states.at(thread_id, n)
        agent = self._viewer.agent
        explained = None
        if agent is not None and agent.name == after.agent_id:
            explained = agent.condition.explain(after)
        lines = [] if before is None else list(diff_states(before, after))
        return self._pages.page("_state.html", lines=lines, explained=explained, whole=describe_state(after))

    async def request(self, request: Request) -> Response:
        """What a model was asked."""
        found = await read_request(self._viewer, get_id(request), get_number(request, "n") or 1)
        return self._pages.page("_request.html", request=found)

    async def entry(self, request: Request) -> Response:
        """One entry of the journal as JSON, whole."""
        thread_id, n = get_id(request), get_number(request, "n") or 1
        found = await read_some(self._viewer.store, thread_id, n - 1, 1)
        if not found:
            raise JournalError(f"thread {thread_id!r} has no entry {n}")
        form = {"n": found[0].n, "writer": found[0].writer, "parent": found[0].parent}
        text = json.dumps(hide_secrets({**form, "body": entry_to_json(found[0].body)}), indent=2, ensure_ascii=False)
        return PlainTextResponse(clean(text))

    async def graph(self, request: Request) -> Response:
        """The graph with what ran and what is next."""
        thread_id, graph = get_id(request), self._viewer.graph
        host = await JournalHost.peek(self._viewer.store, thread_id)
        if graph is None or host is None:
            raise JournalError("no graph is known here; start `locus view FILE:GRAPH`")
        drawing = Markup(graph.svg(host.state))  # noqa: S704 - what draws it escapes the names of its nodes
        return self._pages.page("_graph.html", drawing=drawing)

    async def _open_questions(self, thread_id: str, head: int) -> Sequence[QuestionItem]:
        """The questions of the newest block that have no answer on record; with what was left for them meanwhile."""
        boundary = await find_boundary(self._viewer.store, thread_id, head)
        entries = await read_after(self._viewer.store, thread_id, boundary)
        if any(isinstance(entry.body, Transition) for entry in entries):
            return ()
        blocks: list[Block] = read_blocks(entries)
        items = blocks[-1].items if blocks else ()
        found = [item for item in items if isinstance(item, QuestionItem) and item.answer is None]
        if not found or not has_all_of(self._viewer.store, QueueStore):
            return found
        # An answer that was left in the store is an entry of the thread when a process goes on with the run.
        store: Any = self._viewer.store
        bodies = [signal.body for signal in await store.signals(thread_id)]
        left = {body.interrupt_id: pretty(body.answer) for body in bodies if isinstance(body, Answered)}
        return [evolve(item, answer=left.get(item.interrupt_id)) for item in found]
