"""`Plan` and `Step`: what is to be done, in which order, and what is known of it beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from locus.core import EMPTY, FrozenDict, freeze

__all__ = ["Plan", "Step"]


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(value)


@frozen(kw_only=True)
class Step:
    """One step of a plan.

    Args:
        id: unique in the run.
        description: what it is for.
        tool: the tool that it calls; None for a step of thought, whose text is its result.
        arguments: of the call; a value may refer to results of earlier steps, see `references`.
        decide: arguments whose value takes judgement, each with what is to be decided.
        depends_on: the steps that must be done before, those that the arguments refer to included.
        decision_point: the rest is planned again when its result is known.
    """

    id: str
    description: str = ""
    tool: str | None = None
    arguments: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    decide: FrozenDict[str, str] = field(default=EMPTY, converter=freeze)
    depends_on: tuple[str, ...] = field(default=(), converter=_texts)
    decision_point: bool = False

    @property
    def needs_judge(self) -> bool:
        """Whether a model must be asked."""
        return self.tool is None or bool(self.decide)


def _steps(value: Any) -> tuple[Step, ...]:
    return tuple(value)


@frozen(kw_only=True)
class Plan:
    """What is to be done.

    Args:
        goal: what it is to reach.
        steps: the steps; one may depend on any other, without circles.
        answer: the parts of the final answer, texts and references, or nothing where the model is to answer.
    """

    goal: str = ""
    steps: tuple[Step, ...] = field(default=(), converter=_steps)
    answer: tuple[Any, ...] = field(default=(), converter=freeze)

    @property
    def outline(self) -> str:
        """The plan in words, a line a step."""
        lines = [f"{n}. {step.description or step.tool or step.id}" for n, step in enumerate(self.steps, 1)]
        return "\n".join([f"Plan: {self.goal}", *lines])

    def to_data(self) -> dict[str, Any]:
        """Plain data, for the journal."""
        return {"goal": self.goal, "steps": [_step_to_data(step) for step in self.steps], "answer": self.answer}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that `to_data` wrote."""
        return cls(goal=data["goal"], steps=(Step(**each) for each in data["steps"]), answer=data["answer"])


def _step_to_data(step: Step) -> dict[str, Any]:
    made: dict[str, Any] = {"id": step.id, "description": step.description, "tool": step.tool}
    # What says nothing is not written.
    more = {"arguments": step.arguments, "decide": step.decide, "depends_on": step.depends_on}
    made |= {name: value for name, value in more.items() if value}
    return {**made, "decision_point": True} if step.decision_point else made
