"""The plugin's events."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["EVENTS", "PlanEndEvent", "PlanEvent", "ReplanEvent", "StepEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class PlanEvent(Event):
    """There is a plan.

    Args:
        goal: what it is to reach.
        steps: the ids of its steps, in order.
        outline: the plan in words, a line a step.
        revision: 0 for the first plan of a run.
    """

    goal: str = ""
    steps: tuple[str, ...] = ()
    outline: str = ""
    revision: int = 0


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class StepEvent(Event):
    """A step was started, or it is known what came of it.

    The end of a call is reported by the next Think; `ToolCompleteEvent` comes as it happens.

    Args:
        step: its id.
        description: what it is for.
        status: ``"started"``, ``"done"`` or ``"failed"``.
        tool_name, call_id: of its call; ``""`` for a step of thought.
        judged: whether the executor was asked.
        error: why it failed, or None.
    """

    step: str = ""
    description: str = ""
    status: str = ""
    tool_name: str = ""
    call_id: str = ""
    judged: bool = False
    error: str | None = None


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ReplanEvent(Event):
    """The rest of a plan is planned again.

    Args:
        reason: why.
        step: the id of the step that gave the reason.
        replans: how often it has happened in this run, this time included.
    """

    reason: str = ""
    step: str = ""
    replans: int = 0


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class PlanEndEvent(Event):
    """The plan has ended.

    Args:
        how: ``"answered"`` (all is done, the model answers), ``"template"`` (all is done, the plan made the answer),
            ``"unplanned"`` (the planner sees no need for a plan) or ``"react"`` (given up: the model continues alone).
        reason: why it was given up, or ``""``.
    """

    how: str = ""
    reason: str = ""


EVENTS: tuple[type[Event], ...] = (PlanEvent, StepEvent, ReplanEvent, PlanEndEvent)
