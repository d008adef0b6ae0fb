"""`Answers`: what clients answer to the questions of runs, each of it once.

The name that a client gives its answer is kept at the thread, as the id of a signal that asks for nothing. It is kept
before the run goes on, and says which questions were open: so the same request, to this process or to the next one, is
known, and never answers a question that came later. Where a process died in between, the questions are still the same,
and the answer is given then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from locus import AgentResult, Run
from locus.core.errors import InterruptMismatch, LocusError, NothingToResume, ThreadBusy
from locus.core.journal import Answered
from locus.journal import JournalHost, QueueStore, Signal
from locus.loop import ended_before, matched_answers
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.turns import Turn, Turns, unknown_thread
from locus_plugin_serve.users import ThreadName

__all__ = ["Answers"]

#: How many answers are known where the store keeps no signals.
_KEPT = 10_000


class Answers:
    """Gives answers to the runs of an agent.

    Args:
        turns: the turns of the agent.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns, self._store = turns, turns.store
        #: Thread and name of each answer that was given, the oldest first, where the store keeps no signals.
        self._given: dict[tuple[str, str], None] = {}

    async def give(self, thread: ThreadName, answer: Any, *, request_id: str = "", run_id: str = "") -> Turn:
        """Go on with the run of a thread, whose question is answered; a repeat is answered with how the run is.

        Args:
            thread: the thread.
            answer: as in `Agent.resume`.
            request_id: the client's name for the answer, or ``""``.
            run_id: the run that it is for, or ``""``: the newest.

        Raises:
            Problem: the thread does not exist, another run is the newest, or the server has no room.
            LocusError: the run has ended or is under way, or the answer does not fit.
        """
        host = await JournalHost.peek(self._store, thread.thread_id)
        if host is None:
            raise unknown_thread(thread)
        if run_id and host.run_id != run_id:
            raise Problem(409, f"thread {thread.name!r} has gone on with another run", code="run_is_over")
        wrong: LocusError | None = None
        fitting: Mapping[str, Any] = {}
        try:
            fitting = self._fit(thread, host, answer)
        except (InterruptMismatch, NothingToResume, ThreadBusy) as e:
            wrong = e
        if request_id and not await self._is_first(thread, host, request_id):
            return await self._repeat(thread, host)
        if wrong is not None:
            raise wrong
        turn = await self._turns.resume(thread, fitting)
        if request_id and not isinstance(self._store, QueueStore):
            self._given[thread.thread_id, request_id] = None
            if len(self._given) > _KEPT:
                del self._given[next(iter(self._given))]
        return turn

    def _fit(self, thread: ThreadName, host: JournalHost, answer: Any) -> Mapping[str, Any]:
        """The answer by the id of the question that is open now, so that it cannot reach a later one."""
        if self._turns.find(thread) is not None:
            raise ThreadBusy(thread.thread_id, "this server")
        if host.open_node is None:
            raise NothingToResume(f"the run of thread {thread.name!r} has ended")
        return matched_answers(host, answer)

    async def _is_first(self, thread: ThreadName, host: JournalHost, request_id: str) -> bool:
        """Whether an answer of this name did not come before; one that reached no run did not."""
        store = self._store
        if not isinstance(store, QueueStore):
            return (thread.thread_id, request_id) not in self._given
        # No answers are in it: it only keeps the name, and until a segment has seen it, what was open.
        open_then = " ".join([host.run_id, *host.open_questions])
        kept = Signal(body=Answered(run_id=open_then, interrupt_id="", answer={}), id=f"serve answer {request_id}")
        if await store.signal(thread.thread_id, kept):
            return True
        if self._turns.find(thread) is not None:
            return False
        found = await store.signals(thread.thread_id)
        return any(each.id == kept.id and each.body == kept.body for each in found)

    async def _repeat(self, thread: ThreadName, host: JournalHost) -> Turn:
        turn = self._turns.find(thread)
        if turn is not None:
            await turn.wait_accepted()
            return turn
        result = _read_result(thread, host)
        if result is None:  # a process has died in the middle of it
            return await self._turns.resume(thread)
        return _Recorded(thread, result)


class _Recorded(Turn):
    """A turn that is over already, as its journal has it."""

    def __init__(self, thread: ThreadName, result: AgentResult[Any]) -> None:
        super().__init__(thread, "", cast("Run[Any]", None))
        self.run_id, self.result = result.run_id, result
        self.accepted.set()
        self.finished.set()

    def cancel(self, reason: str) -> None:
        """Do nothing: it is over."""


def _read_result(thread: ThreadName, host: JournalHost) -> AgentResult[Any] | None:
    """How the run ended or what it waits for; None where it goes on."""
    ended = ended_before(host, answered=False)
    if ended is None:
        return None
    last, ending = ended.state.last_assistant, ended.ending
    return AgentResult(
        run_id=host.run_id,
        thread_id=thread.thread_id,
        message=last.text if last is not None and not ended.questions else "",
        stop_reason=ending.reason,
        satisfied=ending.satisfied,
        detail=ending.detail,
        state=ended.state,
        usage=ended.state.usage,
        interrupts=ended.questions,
        error=ending.error,
        iteration_finished=ending.iteration_finished,
        is_open=host.open_node is not None,
        not_before=host.due,
    )
