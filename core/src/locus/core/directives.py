"""What a hook may answer: go on, stop, try again, or refuse one call.

Of several directives Cancel beats Reject beats Retry beats Continue: a Reject, which answers the start of a tool alone,
is final for that call. Of several decisions about a tool call Cancel beats Reject beats Interrupt beats Allow. The
first of equals wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import field

from locus.core.data import declare_forms, register_value
from locus.core.frozen import frozen

if TYPE_CHECKING:
    from datetime import datetime
    from types import ModuleType


@frozen
class Continue:
    """Go on (what returning None means as well)."""


def cancel_reason(given: object) -> str:
    """The text of a cancel's reason, whatever was given as one: a cancel must not be lost because of it."""
    return "" if given is None else str(given)


@frozen
class Cancel:
    """End the run cleanly once the current node has finished: ``TerminateEvent("Cancelled: <reason>")``."""

    reason: str = field(default="", converter=cancel_reason)


@frozen
class Retry:
    """Run the last node again: Think, or in Execute the calls that are safe to repeat ."""

    reason: str = ""


@frozen
class Reject:
    """Refuse this one tool call, whatever others answer; the model gets the reason as the call's error result."""

    reason: str = ""


@frozen
class Allow:
    """Let this tool call run."""


@frozen
class Option:
    """One of the answers that a person may choose.

    Args:
        label: what the person reads, and answers with.
        allow: where a hook asks about a call, choosing this lets the call run; any other answer refuses it.
        takes: what the person may add. With ``"reason"``, the answer is the label or ``{"reason": "..."}``, whose text
            the model reads. With ``"arguments"`` it is ``{"arguments": {...}}``: the call runs with these, all of
            them, in the place of its own.
    """

    label: str
    allow: bool = field(default=False, kw_only=True)
    takes: Literal["", "reason", "arguments"] = field(default="", kw_only=True)

    def __str__(self) -> str:
        return self.label


#: An answer to choose from. A text allows nothing.
Choice = str | Option

#: The answers to a question about a call that comes without options.
APPROVAL: tuple[Choice, ...] = (Option("allow", allow=True), Option("refuse"))


_TAKEN: dict[str, type] = {"reason": str, "arguments": Mapping}


def chosen_options(options: Sequence[Choice], answer: Any) -> list[Choice]:
    """The options that an answer means; empty where it is not an answer to the question."""
    return [option for option in options if _means(option, answer)]


def _means(option: Choice, answer: Any) -> bool:
    takes = option.takes if isinstance(option, Option) else ""
    if isinstance(answer, Mapping):
        return takes != "" and set(answer) == {takes} and isinstance(answer[takes], _TAKEN[takes])
    return takes != "arguments" and answer in (option, str(option))


class Interrupt(BaseException):
    """Ask a person: raised by a tool, or returned by a hook that decides about a call.

    It derives from `BaseException` so that ``except Exception`` in a tool cannot swallow it.

    Args:
        question: what the person reads.
        options: the answers to choose from; empty for a free answer. A hook that decides about a call says with
            `Option` which of them let the call run; without options it gets `APPROVAL`: "allow" and "refuse".

    Raises:
        TypeError: one of them is something else, with which the journal could not be read.
    """

    def __init__(self, question: str, options: Iterable[Choice] = ()) -> None:
        self.question, self.options = question, (options,) if isinstance(options, str) else tuple(options)
        if not (isinstance(question, str) and all(isinstance(each, str | Option) for each in self.options)):
            raise TypeError(f"expected a text, and texts or Options to choose from, got {question!r} and {options!r}")
        super().__init__(question)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.question, self.options))


class Suspended(BaseException):
    """Control flow of the loop: the segment ends, and the run waits: for a person, whose questions are in the journal.

    It derives from `BaseException` so that ``except Exception`` in a wrapper cannot swallow it.

    Args:
        until: what it waits for in place of that: a moment. The node is entered again then.
    """

    def __init__(self, *args: object, until: datetime | None = None) -> None:
        self.until = until
        super().__init__(*args)


class LeftOpen(Suspended):
    """Control flow of the loop: a node failed and leaves the run open, so that `resume` enters it again.

    Args:
        detail: what failed, for people.
        error: what was raised.
    """

    def __init__(self, detail: str, error: BaseException) -> None:
        self.detail, self.error = detail, error
        super().__init__(detail)


@frozen
class Accept:
    """The answer is accepted as it is."""


@frozen
class Revise:
    """Send the answer back to Think with feedback for the model."""

    feedback: str = field()


Directive = Continue | Cancel | Retry | Reject
Decision = Allow | Reject | Cancel | Interrupt
Verdict = Accept | Revise


def _declare(codec: ModuleType) -> None:
    """A text stays a text; an option is an object."""
    convert = codec.converter
    convert.register_structure_hook_func(
        lambda t: t == Choice, lambda form, _: convert.structure(form, str if isinstance(form, str) else Option)
    )
    convert.register_unstructure_hook_func(lambda t: t == Choice, convert.unstructure)


declare_forms(_declare)

# What a reviewer says is the result of a step.
register_value(Cancel, "locus.cancel", lambda cancel: cancel.reason, Cancel, plain=True)
register_value(Revise, "locus.revise", lambda revise: revise.feedback, Revise, plain=True)
