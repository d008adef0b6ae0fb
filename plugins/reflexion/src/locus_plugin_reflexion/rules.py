"""The judge without a model: its verdict follows from the calls alone, so it is free and always the same."""

from __future__ import annotations

from collections.abc import Sequence

from locus.core.state import AgentState, ToolExecution
from locus_kit.reflect import OnRepetition
from locus_plugin_reflexion.findings import found_nothing
from locus_plugin_reflexion.reflection import Reflection, StepVerdict

__all__ = ["judge_by_rules"]

_CIRCLES = OnRepetition()
#: How many calls in a row that bring nothing new are a stall.
_STALL = 3


def judge_by_rules(state: AgentState, *, window: int) -> Reflection:
    """Judge a step by its calls.

    The confidence is how many of the last ``window`` calls brought something new, divided by ``window``: calls that
    succeeded with a result which no earlier one of them had given for the same arguments, and which does not say that
    nothing was found. So a single call is little evidence, whatever it brought. It says how well the *calls* go. It
    cannot know whether the user's request is fulfilled: join it with a goal
    (``ToolCalled("submit") & ConfidenceMet(0.9)``).

    Args:
        state: the state after Execute.
        window: how many calls to look at, 1 or more.
    """
    recent = state.tool_executions[-window:]
    fresh = _fresh(recent)
    confidence = sum(fresh) / window
    step = [(e, new) for e, new in zip(recent, fresh, strict=True) if e.iteration == state.iteration]
    failed = [e.tool_name for e, _ in step if not e.succeeded]
    circle = _CIRCLES(state)
    if circle is not None:
        return Reflection(
            verdict=StepVerdict.LOOP,
            judgment=f"The calls go in circles: {circle}.",
            confidence=confidence,
            guidance="The same calls give the same results: change the arguments, take another tool, or answer.",
        )
    if step and len(failed) == len(step):
        return Reflection(
            verdict=StepVerdict.STUCK,
            judgment=f"Every call of the last step failed: {_names(failed)}.",
            confidence=confidence,
            guidance="Read the error, then correct the arguments or take another tool.",
        )
    stalled = _count_stalled(state.tool_executions, fresh)
    if stalled >= _STALL and not any(new for _, new in step):
        return Reflection(
            verdict=StepVerdict.STUCK,
            judgment=f"The last {stalled} calls found nothing new: {_names([e.tool_name for e in recent[-stalled:]])}.",
            confidence=confidence,
            guidance="More of the same will hardly help: ask for less or for something else, take another tool, "
            "or say what could not be found.",
        )
    if step and all(new for _, new in step):
        judgment = f"Every call of the last step gave a new result: {_names([e.tool_name for e, _ in step])}."
        return Reflection(verdict=StepVerdict.NEW_FINDINGS, judgment=judgment, confidence=confidence)
    some = f"{_names(failed)} failed" if failed else "some of its results are not new or are empty"
    return Reflection(
        verdict=StepVerdict.ON_TRACK, judgment=f"The last step went on, and {some}.", confidence=confidence
    )


def _fresh(executions: Sequence[ToolExecution]) -> list[bool]:
    """For each call, whether it succeeded with a result that it had not given before and that is not empty."""
    seen: set[tuple[str, str | None]] = set()
    fresh = []
    for execution in executions:
        given = (execution.key or repr((execution.tool_name, execution.arguments)), execution.result)
        fresh.append(execution.succeeded and given not in seen and not found_nothing(execution))
        seen.add(given)
    return fresh


def _count_stalled(executions: Sequence[ToolExecution], fresh: Sequence[bool]) -> int:
    """How many of the newest calls brought nothing new; 0 where they are all of one turn."""
    count = next((n for n, new in enumerate(reversed(fresh)) if new), len(fresh))
    newest = executions[len(executions) - count :]
    return count if len({e.iteration for e in newest}) > 1 else 0


def _names(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))
