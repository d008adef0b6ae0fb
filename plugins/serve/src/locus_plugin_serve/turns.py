"""`Turns`: the runs that this process works on, each a task of its own, apart from the requests.

A turn is accepted when its first transition is on the journal: from then on it is not lost, whatever becomes of this
process. Turns are not queued: each has a place at once, or is refused. What an earlier process has left open goes on
when there is room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from locus import Agent, AgentResult
from locus.core.errors import LocusError, NothingToResume, ThreadBusy
from locus.core.events import CheckpointEvent, Event, ModelChunkEvent, ModelCompleteEvent, RunStartEvent
from locus.journal import JournalHost, JournalStore, ThreadQuery, ThreadStatus
from locus.plugins import scrub
from locus_plugin_serve.accounts import USER_ENTRY, Accounts
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.metrics import Metrics
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.settings import ServeSettings
from locus_plugin_serve.users import ThreadName

if TYPE_CHECKING:
    from locus import Run
    from locus.core.messages import Message

__all__ = ["REQUEST_ENTRY", "Turn", "Turns"]

_log = logging.getLogger("locus.serve")

#: The entry of a thread's metadata with the request id of its newest turn.
REQUEST_ENTRY = "serve.request"

#: The stop reason of a run that made room or sleeps.
_YIELDED = "Yielded"

#: Seconds between two looks for runs whose process is gone, and that a run gets to yield after the drain.
_LOOK, _LAST = 5.0, 5.0


class Turn:
    """A run of a thread in this process.

    Args:
        thread: the thread.
        request_id: the name that the client gave the turn, or ``""``.
        run: the run.
    """

    def __init__(self, thread: ThreadName, request_id: str, run: Run[Any]) -> None:
        self.thread, self.request_id = thread, request_id
        self.thread_id = thread.thread_id
        self._run = run
        #: The run's id, once the turn is accepted.
        self.run_id = ""
        #: The number of the entry that the turn's events come behind.
        self.after = 0
        #: The turn is on the journal, or has ended.
        self.accepted = anyio.Event()
        self.finished = anyio.Event()
        #: How many requests wait for it or read its events.
        self.readers = 0
        self.result: AgentResult[Any] | None = None
        self.error: Exception | None = None

    def cancel(self, reason: str) -> None:
        """End it at its next safe point."""
        self._run.cancel(reason)

    async def wait(self) -> AgentResult[Any]:
        """The result, when it has ended.

        Raises:
            LocusError: what the run raised.
        """
        await self.finished.wait()
        if self.result is None:
            raise self.error or NothingToResume(f"the run of {self.thread.name!r} was left open")
        return self.result

    async def wait_accepted(self) -> None:
        """Return when the turn is on the journal.

        Raises:
            LocusError: it never came there.
        """
        await self.accepted.wait()
        if self.error is not None and not self.run_id:
            raise self.error


class Turns:
    """The turns of an agent.

    Args:
        agent: the agent; it has a name and a store.
        settings: how many runs, and for whom.
        metrics: counts them.
        deps: what tools get as ``ctx.deps``.
    """

    def __init__(self, agent: Agent[Any, Any], settings: ServeSettings, metrics: Metrics, *, deps: Any = None) -> None:
        # A listener costs less than an iterated run, which changes tasks twice for each event.
        self.agent = agent.with_listener("serve", self._hear, hears_chunks=True)
        #: The same for a turn whose answer is read at its end: no model is asked to stream it.
        self._unwatched = agent.with_listener("serve", self._hear)
        self.settings, self.metrics = settings, metrics
        self.store: JournalStore = agent.threads.store
        self.accounts = Accounts(settings, self.store)
        self._deps = deps
        self._group: TaskGroup | None = None
        self._turns: dict[str, Turn] = {}
        self._feeds: dict[str, set[Feed]] = {}
        self._changed = anyio.Event()
        #: Set when no more turns are taken.
        self.draining = anyio.Event()

    # -- beginning --------------------------------------------------------------------------------

    def find(self, thread: ThreadName) -> Turn | None:
        """The turn that runs on a thread in this process now."""
        return self._turns.get(thread.thread_id)

    async def begin(
        self,
        thread: ThreadName,
        prompt: str | Sequence[Message],
        *,
        request_id: str = "",
        is_watched: bool = False,
        **options: Any,
    ) -> Turn:
        """Begin a turn, and return when it is on the journal; one with the same request id is the same turn.

        Args:
            thread: the thread.
            prompt: the user's turn.
            request_id: the client's name for the turn, or ``""``.
            is_watched: make the pieces of answers, also before the first reader of the thread is there.
            options: further keywords of `Agent.run`; its ``metadata`` among them.

        Raises:
            Problem: the server has no room, or the user has used up what a user may use.
            LocusError: the turn cannot begin.
        """
        same = self._find_same(thread, request_id)
        if same is None:
            try:
                await self._admit(thread)
            except Problem:
                # Looked at only now: most requests are admitted, and then the run itself finds that it has ended.
                if not await self._needs_no_room(thread, request_id):
                    raise
            same = self._find_same(thread, request_id)  # one that came at the same time may have begun it meanwhile
        if same is not None:
            await same.wait_accepted()
            return same
        entries = {USER_ENTRY: thread.user, REQUEST_ENTRY: request_id}
        options["metadata"] = {**options.get("metadata", {}), **entries}
        agent = self.agent if is_watched or thread.thread_id in self._feeds else self._unwatched
        return await self._accept(
            thread,
            request_id,
            lambda: agent.run(
                prompt, thread_id=thread.thread_id, request_id=request_id or None, deps=self._deps, **options
            ),
        )

    def _find_same(self, thread: ThreadName, request_id: str) -> Turn | None:
        found = self.find(thread)
        return found if found is not None and request_id and found.request_id == request_id else None

    async def _needs_no_room(self, thread: ThreadName, request_id: str) -> bool:
        """Whether a request is a turn that is under way, or one whose end or question is only read again."""
        if not request_id:
            return False
        host = await JournalHost.peek(self.store, thread.thread_id)
        if self._find_same(thread, request_id) is not None:
            return True
        if host is None or host.state.metadata.get(REQUEST_ENTRY) != request_id:
            return False
        return host.open_node is None or bool(host.open_questions)

    async def resume(self, thread: ThreadName, answer: Any = None, *, is_recovery: bool = False) -> Turn:
        """Go on with the open run of a thread, and return when it does.

        Args:
            thread: the thread.
            answer: as in `Agent.resume`.
            is_recovery: it is not a client that asks.

        Raises:
            Problem: the server has no room.
            LocusError: nothing is open, or the answer does not fit.
        """
        host = await JournalHost.peek(self.store, thread.thread_id)
        if host is None:
            raise unknown_thread(thread)
        if not is_recovery:
            await self._admit(thread)
        request_id = str(host.state.metadata.get(REQUEST_ENTRY) or "")
        attempts = self.settings.max_attempts if is_recovery else None
        return await self._accept(
            thread,
            request_id,
            lambda: self.agent.resume(thread.thread_id, answer, deps=self._deps, max_attempts=attempts),
            # A client that asks for a recovered turn again has maybe read nothing of it.
            after=0 if is_recovery else host.claim.head,
        )

    async def _admit(self, thread: ThreadName) -> None:
        if self.draining.is_set():
            raise Problem.of_load("the server is leaving; ask the next one", seconds=2)
        await self.accounts.admit(thread.user)
        if len(self._turns) >= self.settings.max_runs:
            raise Problem.of_load(f"the server works on {self.settings.max_runs} runs, as many as it may")
        most = self.settings.user_max_runs
        if sum(each.thread.user == thread.user for each in self._turns.values()) >= most:
            raise Problem.of_limit(f"{most} runs of this user are under way, as many as may be", code="too_many_runs")

    async def _accept(
        self, thread: ThreadName, request_id: str, make: Callable[[], Run[Any]], *, after: int = 0
    ) -> Turn:
        # From here to the first await nothing else runs: the place that was free still is.
        if thread.thread_id in self._turns:
            raise ThreadBusy(thread.thread_id, "this server")
        if self._group is None:
            raise Problem.of_load("the server has not begun, or has ended")
        turn = Turn(thread, request_id, make())
        turn.after = after
        self._turns[thread.thread_id] = turn
        self.metrics.begun += 1
        self._group.start_soon(self._drive, turn)
        await turn.wait_accepted()
        return turn

    async def _drive(self, turn: Turn) -> None:
        """Work on a turn to its end, whatever becomes of who has asked for it."""
        try:
            turn.result = await turn._run  # noqa: SLF001  a turn and these turns are one mechanism
            turn.run_id = turn.result.run_id
        except Exception as e:  # noqa: BLE001  those who wait for the turn get it
            turn.error = e
            if turn.run_id:
                _log.error("a run was left open: %s: %s", type(e).__name__, scrub(str(e)))
        finally:
            del self._turns[turn.thread_id]
            turn.accepted.set()
            turn.finished.set()
            for feed in self._feeds.get(turn.thread_id, ()):
                feed.close()
            self._change()
            self.metrics.end(turn.result)
        result = turn.result
        if result is not None and result.stop_reason == _YIELDED and not self.draining.is_set():
            assert self._group is not None
            self._group.start_soon(self._wake, turn.thread, result.not_before)

    def _hear(self, event: Event) -> None:
        """Note an event of a run, or of one below it, whose thread's id begins with that of the run above."""
        turn = self._turns.get(event.thread_id) or self._turns.get("/".join(event.thread_id.split("/", 2)[:2]))
        if turn is None:
            return
        if type(event) is not ModelChunkEvent:  # of which there are hundreds, and nothing but readers wants them
            self._note(turn, event)
        for feed in self._feeds.get(turn.thread_id, ()):
            feed.push(event)

    def _note(self, turn: Turn, event: Event) -> None:
        """Count a model call, and accept a turn that is on the journal."""
        if type(event) is ModelCompleteEvent and not event.replayed:
            self.metrics.hear(event)
            spent = self.accounts.charge(turn.thread.user, event.usage)
            if spent:
                for each in tuple(self._turns.values()):
                    if each.thread.user == turn.thread.user:
                        each.cancel(spent)
        if not turn.run_id and event.parent_run_id is None:
            if type(event) is CheckpointEvent:
                turn.after = turn.after or event.head - 1
                turn.run_id = event.run_id
            elif type(event) is RunStartEvent and event.resumed:
                turn.run_id = event.run_id
            if turn.run_id:
                turn.accepted.set()

    # -- listening --------------------------------------------------------------------------------

    @contextmanager
    def listen(self, thread: ThreadName) -> Iterator[Feed]:
        """The events of a thread from now on, as far as its runs are in this process."""
        feed = Feed()
        self._feeds.setdefault(thread.thread_id, set()).add(feed)
        try:
            yield feed
        finally:
            feeds = self._feeds[thread.thread_id]
            feeds.discard(feed)
            if not feeds:
                del self._feeds[thread.thread_id]

    @property
    def running(self) -> int:
        """How many turns there are."""
        return len(self._turns)

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # -- living and leaving -------------------------------------------------------------------------

    async def live(self, *, started: anyio.Event, leave: anyio.Event) -> None:
        """Work until it is to leave and has drained.

        Args:
            started: set when turns are taken.
            leave: set from outside, to have it leave.
        """
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._recover)
            started.set()
            await leave.wait()
            await self._drain()
            self._group = None
            group.cancel_scope.cancel()

    async def _drain(self) -> None:
        self.draining.set()
        with anyio.move_on_after(self.settings.drain):
            await self._wait_until_idle()
        self.agent.drain()
        with anyio.move_on_after(_LAST):
            await self._wait_until_idle()
        for feeds in self._feeds.values():
            for feed in feeds:
                feed.close()

    async def _wait_until_idle(self) -> None:
        while self._turns:
            await self._changed.wait()

    async def _recover(self) -> None:
        """Go on with what earlier processes have left open: at once, and with what is found to be left later."""
        looks_for: frozenset[ThreadStatus] = frozenset({"crashed", "paused"})
        while True:
            try:
                found = await self.store.threads(ThreadQuery(status=looks_for, agent_id=self.agent.name or ""))
            except LocusError as e:
                _log.error("open runs cannot be looked for: %s", scrub(str(e)))
                found = ()
            for info in found:
                thread = ThreadName.parse(info.thread_id)
                if thread is None or info.metadata.get(USER_ENTRY) != thread.user:
                    continue  # of another program, or of a child run, which is its parent's
                while len(self._turns) >= self.settings.max_runs:
                    await self._changed.wait()
                await self._go_on(thread)
            # What is paused from now on is so for a reason: only a process that dies leaves something open.
            looks_for = frozenset({"crashed"})
            await anyio.sleep(_LOOK)

    async def _go_on(self, thread: ThreadName) -> None:
        if self.find(thread) is not None or self.draining.is_set():
            return
        try:
            await self.resume(thread, is_recovery=True)
        except (ThreadBusy, NothingToResume):
            return  # another process was faster
        except Exception as e:  # noqa: BLE001  one that cannot be gone on with must not keep the others
            _log.error("a run cannot be gone on with: %s: %s", type(e).__name__, scrub(str(e)))
        else:
            self.metrics.recovered += 1

    async def _wake(self, thread: ThreadName, due: datetime | None) -> None:
        if due is not None:
            await anyio.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
        await self._go_on(thread)


def unknown_thread(thread: ThreadName) -> Problem:
    """The problem of a thread that does not exist, or that is another user's: the answer is the same."""
    return Problem(404, f"thread {thread.name!r} does not exist", code="unknown_thread")
