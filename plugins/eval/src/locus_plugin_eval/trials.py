"""`Trial`: one run of an agent on one case, and what its checks found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import cattrs
from attrs import field, frozen

__all__ = ["Call", "CheckResult", "Status", "Trial", "trial_from_json", "trial_to_json"]

#: ``"failed"``: the agent did it wrong. ``"error"``: it could not be told, as the agent raised, or the judge gave no
#: valid verdict. ``"missing"``: a recorded answer that the agent needed is not on the tape.
Status: TypeAlias = Literal["passed", "failed", "error", "missing"]


@frozen(kw_only=True)
class Call:
    """A tool call that the model made, whatever came of it.

    Args:
        name: of the tool.
        arguments: as the tool got them; of a refused call, as the model gave them.
        result: the text that the model got, or None where it failed.
        error: ``"Type: message"``, or None.
    """

    name: str
    arguments: Mapping[str, Any] = field(factory=dict)
    result: str | None = None
    error: str | None = None


@frozen(kw_only=True)
class CheckResult:
    """What one check found.

    Args:
        kind: of the check, such as ``"regex"``; ``"ended"`` is the one that every case has.
        check: the check in a line.
        status: ``"passed"``, ``"failed"``, or ``"error"`` where it could not be checked.
        detail: what was found instead; ``""`` where it passed.
    """

    kind: str
    check: str
    status: Literal["passed", "failed", "error"]
    detail: str = ""


@frozen(kw_only=True)
class Trial:
    """One run of an agent on one case.

    Args:
        case: the id of the case.
        repeat: which of its repeats, from 1.
        checks: what the checks found, in the order of the case.
        text: the final answer.
        calls: every tool call, in order.
        stop_reason: why the run ended, of its last turn.
        iterations: model calls of the loop, over all turns.
        tokens: of the agent, plugins and children included.
        cost: dollars, or None where no price is known.
        seconds: that the run was at work, without waiting and downtime; None where answers were replayed.
        judge_tokens, judge_cost: of the judges of this trial.
        missing: why it cannot be told what the agent would have done: what is not on the tape; or ``""``.
        thread: the thread with the run.
    """

    case: str
    repeat: int
    checks: tuple[CheckResult, ...] = ()
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop_reason: str = ""
    iterations: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float | None = None
    judge_tokens: int = 0
    judge_cost: float | None = None
    missing: str = ""
    thread: str = ""

    @property
    def status(self) -> Status:
        """What it came to. A check that failed counts more than one that could not be made.

        Where the run itself failed, there was no answer to check: that is an error, whatever the checks say of nothing.
        """
        if self.missing:
            return "missing"
        if any(each.kind == "ended" and each.status == "error" for each in self.checks):
            return "error"
        found = {each.status for each in self.checks}
        return "failed" if "failed" in found else "error" if "error" in found else "passed"

    @property
    def faults(self) -> tuple[CheckResult, ...]:
        """The checks that did not pass."""
        return tuple(each for each in self.checks if each.status != "passed")


_CONVERTER = cattrs.Converter(forbid_extra_keys=True)


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """The JSON form, with the status beside the fields."""
    form: dict[str, Any] = _CONVERTER.unstructure(trial)
    return {**form, "status": trial.status}


def trial_from_json(form: Mapping[str, Any]) -> Trial:
    """The inverse.

    Raises:
        ValueError: it is not the form of a trial.
    """
    try:
        given = {key: value for key, value in form.items() if key != "status"}
        return _CONVERTER.structure(given, Trial)
    except Exception as e:
        raise ValueError(f"expected a trial, got {form!r:.80}: {'; '.join(cattrs.transform_error(e))}") from e
