"""One run after another on one thread and one event loop, with questions to a person in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from attrs import frozen

from locus import Agent, AgentResult, Run
from locus.core.errors import StoreError
from locus_kit.calls import show_call
from locus_plugin_cli import status
from locus_plugin_cli.approval_prompt import ask_person, is_person_present
from locus_plugin_cli.pending_calls import calls_of_questions
from locus_plugin_cli.session import Session
from locus_plugin_cli.stopper import Stopper
from locus_plugin_cli.view.base import View
from locus_plugin_cli.view.tally import Tally

__all__ = ["Conversation", "Turn"]


@frozen
class Turn:
    """How one turn ended.

    Args:
        result: the result of its last segment; None when it was stopped in the middle.
        stopped: Ctrl-C was pressed.
        tally: what was done.
    """

    result: AgentResult[Any] | None
    stopped: bool
    tally: Tally

    @property
    def status(self) -> int:
        """The exit status of a command that consists of this turn."""
        if self.stopped or self.result is None:
            return status.STOPPED
        if self.result.interrupts:
            return status.WAITING
        if self.result.failed or self.result.ending.is_cancelled:
            return status.FAILED
        return status.OK


class Conversation:
    """Runs turns, with questions to a person in between.

    Args:
        session: what the runs share.
        view: shows what happens.
        asks: whether a person may be asked.
    """

    def __init__(self, session: Session, view: View, *, asks: bool) -> None:
        self.session = session
        #: The system prompt in place of that of the options, see `speak_as`.
        self.system: str | None = None
        self._agent: Agent[Any, Any] = session.agent()
        self._view = view
        self._asks = asks and is_person_present()

    def speak_as(self, system: str) -> None:
        """Another system prompt from the next turn on.

        Raises:
            ConfigError: it is not a store.
        """
        # An agent is immutable: another one on the same conversation.
        self._agent = self.session.agent(system)
        self.system = system

    def say(self, prompt: str) -> Turn:
        """Take a user's turn.

        Raises:
            InputError: the prompt cannot be used.
            JournalError: the thread is busy.
            OutputClosed: the reader of the output is gone; the run was cancelled.
        """
        told = self.session.metadata(self.system)
        return self._turn(lambda: self._agent.run(prompt, thread_id=self.session.thread, metadata=told))

    def resume(self, answer: Any = None, *, max_attempts: int | None = None) -> Turn:
        """Go on with the open run of the thread.

        Args:
            answer: as `Agent.resume` takes it.
            max_attempts: after how many attempts that died in one place the run is set aside; None = never.

        Raises:
            NothingToResume, InterruptMismatch: no run is open, or the answer does not fit.
            OutputClosed: see `say`.
        """
        return self._turn(lambda: self._agent.resume(self.session.thread, answer, max_attempts=max_attempts))

    def _turn(self, start: Callable[[], Run[Any]]) -> Turn:
        tally, stopper = Tally(), Stopper(self._view.note)
        journals, stopped = self.session.journals, False
        result = self._begin(start, tally, stopper)
        # There is something in it now that must not get lost.
        journals.insist()
        while result is not None and result.interrupts and self._asks and not stopper.pressed:
            try:
                calls = calls_of_questions(result.state, result.interrupts)
                answers = ask_person(result.interrupts, {i: show_call(call) for i, call in calls.items()})
            except (EOFError, KeyboardInterrupt) as e:
                stopped = isinstance(e, KeyboardInterrupt)
                break
            result = self._begin(partial(self._agent.resume, result, answers), tally, stopper)
        return Turn(result, stopped or stopper.pressed > 0, tally)

    def _begin(self, start: Callable[[], Run[Any]], tally: Tally, stopper: Stopper) -> AgentResult[Any] | None:
        """Run a segment; again, as long as something can be done about why it could not begin."""
        while True:
            try:
                return self.session.journals.run(self._segment(start(), tally, stopper))
            except StoreError as e:
                if tally.began:
                    raise
                self.session.journals.warn_and_use_memory(e)
                self._agent = self.session.agent(self.system)
            except Exception as e:
                if not (self._asks and self.session.journals.recovers(e)):
                    raise

    async def _segment(self, run: Run[Any], tally: Tally, stopper: Stopper) -> AgentResult[Any] | None:
        async def follow() -> AgentResult[Any]:
            try:
                async for event in run:
                    tally.see(event)
                    self._view.show(event)
            finally:
                with anyio.CancelScope(shield=True):
                    await run.aclose()
            return run.result

        with self._view.running():
            return await stopper.guard(run, follow)
