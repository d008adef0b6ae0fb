"""`AgentResult`: how a run ended, and everything it leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import field

from locus.core.errors import AnswerFailed, RunFailed
from locus.core.events import Ending
from locus.core.frozen import EMPTY, frozen
from locus.core.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from locus.core.journal import Asked
    from locus.core.state import AgentState
    from locus.journal.store import JournalStore

__all__ = ["AgentResult", "Out"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    Out = DefaultTypeVar("Out", covariant=True, default=Any)
else:
    Out = TypeVar("Out", covariant=True)


@frozen(kw_only=True)
class AgentResult(Generic[Out]):
    """How a run ended.

    Args:
        message: the text of the final answer, ``""`` without one.
        parsed: the answer as the output schema's type; None without a schema or when it does not follow it.
        stop_reason: as in `TerminateEvent`, such as ``"NoToolCalls"``.
        satisfied: the leaves of the condition that were satisfied.
        detail: the reason in a sentence.
        state: the final state.
        usage: tokens and dollars of the run, wrappers' attempts, plugins' calls and children included.
        reports: what plugins reported, by plugin; ``"plugins"`` holds what became of each plugin.
        interrupts: the open questions, when the run waits for a person.
        error: what went wrong: the exception, or its text when a journal is all that is left of it; or None.
        iteration_finished: it ended where the model would have been asked again: ``state.iteration`` is the number of
            iterations, and not the index of the last one.
    """

    run_id: str
    thread_id: str
    message: str
    stop_reason: str
    state: AgentState
    parsed: Out | None = None
    satisfied: tuple[str, ...] = ()
    detail: str = ""
    usage: Usage = Usage()
    reports: Mapping[str, Any] = field(default=EMPTY, repr=False)
    interrupts: tuple[Asked, ...] = ()
    error: BaseException | str | None = None
    iteration_finished: bool = False
    # Without a checkpointer the journal lives here, so that `agent.resume(result, answer)` can go on.
    store: JournalStore | None = field(default=None, repr=False, eq=False)

    @property
    def text(self) -> str:
        """The text of the final answer: the same as ``message``."""
        return self.message

    @property
    def ending(self) -> Ending:
        """Why the run ended: to be asked whether it was a cancel, a question or a failure."""
        error = self.error if isinstance(self.error, BaseException) else None
        return Ending(self.stop_reason, self.satisfied, self.detail, error, self.iteration_finished)

    @property
    def iterations(self) -> int:
        """How many iterations the run has begun: as many as there were model calls of the loop."""
        return self.state.iteration + (not self.iteration_finished)

    @property
    def cost(self) -> float | None:
        """Dollars, or None when no price was known, or all that was known is 0."""
        return self.usage.cost

    @property
    def failed(self) -> bool:
        """Whether something went wrong: an error, or an answer that is cut, filtered, refused, empty or invalid.

        A limit, a cancel or a question to a person is not a failure.
        """
        return self.ending.is_failure

    def raise_for_failure(self) -> AgentResult[Out]:
        """This result; for those who prefer an exception to looking at `stop_reason`.

        Raises:
            AnswerFailed: the answer is cut, filtered, refused, empty, or does not follow the output schema.
            RunFailed: the run ended with an error, which is chained.
        """
        ending = self.ending
        if ending.has_answer_fault:
            raise AnswerFailed(ending.reason, self.reports.get("output", ending.detail))
        if ending.is_failure:
            cause = self.error if isinstance(self.error, BaseException) else None
            raise RunFailed(ending.reason, str(self.error)) from cause
        return self
