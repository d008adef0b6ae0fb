"""One run after another on one thread and one event loop, with questions to a person in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio
from attrs import frozen

from locus.agent import Agent
from locus.result import AgentResult
from locus.run import Run
from locus_plugin_cli import status
from locus_plugin_cli.person import ask, present
from locus_plugin_cli.session import Session
from locus_plugin_cli.stopper import Stopper, putting_away
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
        if self.result.failed or self.result.stop_reason.startswith("Cancelled"):
            return status.FAILED
        return status.OK


class Conversation:
    """Runs turns; a context manager, because it owns the event loop that they share.

    Args:
        session: what the runs share.
        view: shows what happens.
        asks: whether a person may be asked.
    """

    def __init__(self, session: Session, view: View, *, asks: bool) -> None:
        self.session = session
        self.agent: Agent[Any, Any] = session.agent()
        self._view = view
        self._asks = asks and present()
        # One loop for all turns: what a provider keeps open between calls belongs to a loop.
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with putting_away():
            self._runner.__exit__(kind, error, trace)

    def say(self, prompt: str) -> Turn:
        """Take a user's turn.

        Raises:
            InputError: the prompt cannot be used.
            JournalError: the thread is busy.
            OutputClosed: whoever read the output is gone; the run was cancelled.
        """
        return self._turn(lambda: self.agent.run(prompt, thread_id=self.session.thread))

    def resume(self, answer: Any = None) -> Turn:
        """Go on with the open run of the thread.

        Raises:
            NothingToResume, InterruptMismatch: there is none, or the answer does not fit.
            OutputClosed: see `say`.
        """
        return self._turn(lambda: self.agent.resume(self.session.thread, answer))

    def _turn(self, start: Callable[[], Run[Any]]) -> Turn:
        tally, stopper = Tally(), Stopper(self._view.note)
        stopped = False
        result = self._runner.run(self._segment(start(), tally, stopper))
        while result is not None and result.interrupts and self._asks and not stopper.pressed:
            try:
                answers = ask(result.interrupts)
            except (EOFError, KeyboardInterrupt) as e:
                stopped = isinstance(e, KeyboardInterrupt)
                break
            result = self._runner.run(self._segment(self.agent.resume(result, answers), tally, stopper))
        return Turn(result, stopped or stopper.pressed > 0, tally)

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
