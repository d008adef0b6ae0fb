"""`Ending`: why a run, or a segment of one, ended. Texts of reasons are written and compared here and nowhere else.

A reason is the name of what ended the run: a condition (``"NoToolCalls"``, ``"ToolCalled AND ConfidenceMet"``), a
plugin's diversion, an error's kind, a cancel with what its caller gave as the reason, or a question to a person. It
is text because events and journals record it, and the conditions of plugins have names that cannot be listed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field

from locus.core.errors import StepFailed
from locus.core.frozen import frozen

if TYPE_CHECKING:
    from locus.core.termination import Satisfied

__all__ = ["CONDITION_ERROR", "DIVERTED", "INTERRUPTED", "JOURNAL_ERROR", "MODEL_ERROR", "NODE_ERROR", "Ending"]

#: The run waits for the answer to a question.
INTERRUPTED = "Interrupted"
#: A plugin led the run to its end.
DIVERTED = "Diverted"
#: This worker could not go on; the run is left open.
JOURNAL_ERROR = "JournalError"

MODEL_ERROR = "ModelError"
NODE_ERROR = "NodeError"
CONDITION_ERROR = "ConditionError"

_CANCELLED = "Cancelled"
_FAILURES = frozenset({MODEL_ERROR, NODE_ERROR, CONDITION_ERROR})


@frozen
class Ending:
    """Why a run ended.

    Args:
        reason: as in `TerminateEvent`.
        satisfied: the names of the condition's leaves that decided.
        detail: the numbers behind it, for people.
        error: what went wrong, or None.
    """

    reason: str
    satisfied: tuple[str, ...] = ()
    detail: str = ""
    error: BaseException | None = field(default=None, eq=False)

    @classmethod
    def of(cls, found: Satisfied) -> Ending:
        """The ending of a run whose condition is satisfied."""
        return cls(found.reason, found.leaves, found.detail)

    @classmethod
    def from_cancel(cls, reason: str | None = "", error: BaseException | None = None) -> Ending:
        """``"Cancelled"``, followed by the caller's reason when there is one."""
        return cls(f"{_CANCELLED}: {reason}" if reason else _CANCELLED, (_CANCELLED,), error=error)

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was ended from outside."""
        return self.reason == _CANCELLED or self.reason.startswith(f"{_CANCELLED}: ")

    @property
    def is_interrupted(self) -> bool:
        """Whether the run waits for the answer to a question."""
        return self.reason == INTERRUPTED

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong (a limit or a cancel is not a failure)."""
        return self.reason in _FAILURES

    @property
    def error_text(self) -> str | None:
        """The error as events and journals show it; None without one."""
        if self.error is None:
            return None
        # One that was read from the journal is shown as it was recorded.
        return str(self.error) if isinstance(self.error, StepFailed) else f"{type(self.error).__name__}: {self.error}"
