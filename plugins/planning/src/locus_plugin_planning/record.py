"""`Record`: what a run knows of its plan, kept in the state's metadata, so that a crash loses none of it.

It is written when a plan is made and when it ends, not with every turn: what came of the steps is in the state
already, as executions under the ids that their calls were given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from attrs import evolve, field, fields, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus.core.state import AgentState
from locus_plugin_planning.plan import Plan, Step

__all__ = ["NAME", "Record"]

NAME = "planning"


@frozen(kw_only=True)
class Record:
    """What became of planning in a run.

    Args:
        run_id: of the run that planned.
        began: when that was. The metadata of a thread outlive a run, and a fork continues it under another id.
        how: ``"running"``, or how it ended, as in `PlanEndEvent`.
        reason: why it was given up, or ``""``.
        plan: the plan in force.
        plans: how many there were.
        done: the ids of the calls of steps of earlier plans, by step.
        thoughts: the results of steps of thought, by step.
        planner_calls, executor_calls, replans: how many.
        steps, turns: how many steps are done and turns were made without the model; once the plan has ended.
    """

    run_id: str
    began: str
    how: str = "running"
    reason: str = ""
    plan: Plan = field(factory=Plan)
    plans: int = 0
    done: FrozenDict[str, str] = field(default=EMPTY, converter=freeze)
    thoughts: FrozenDict[str, str] = field(default=EMPTY, converter=freeze)
    planner_calls: int = 0
    executor_calls: int = 0
    replans: int = 0
    steps: int = 0
    turns: int = 0
    _prefix: str = field(init=False, eq=False, repr=False)

    @_prefix.default
    def _begins(self) -> str:
        return f"p{blake2b(self.run_id.encode(), digest_size=2).hexdigest()}"

    @property
    def running(self) -> bool:
        """Whether a plan is being followed."""
        return self.how == "running"

    @classmethod
    def first(cls, state: AgentState) -> Record:
        """The record of a run that has no plan yet."""
        return cls(run_id=state.run_id, began=state.started_at.isoformat())

    @classmethod
    def of(cls, state: AgentState) -> Record | None:
        """The record of the state's run, or None. Metadata that this plugin did not write are ignored."""
        data = state.metadata.get(NAME)
        if not isinstance(data, Mapping) or data.get("began") != state.started_at.isoformat():
            return None
        try:
            return cls(**{**data, "plan": Plan.from_data(data["plan"])})
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def save_to(self, state: AgentState) -> AgentState:
        """The state with this record."""
        # The plan of a run that continues without it is in the journal; it is not read here again.
        record = self if self.running else evolve(self, plan=Plan(), done=EMPTY, thoughts=EMPTY)
        data: dict[str, Any] = {each.name: getattr(record, each.name) for each in fields(Record) if each.init}
        return state.with_metadata(NAME, {**data, "plan": record.plan.to_data()})

    def calls(self) -> Iterator[tuple[Step, str]]:
        """The steps of the plan in force that call a tool, with the ids of their calls."""
        return ((step, self.call_id(number)) for number, step in enumerate(self.plan.steps) if step.tool is not None)

    def call_id(self, number: int) -> str:
        """The id of the call of a step: nine letters and digits, which is what the strictest provider takes.

        The same after a crash and in a replay, and no other in the run.
        """
        return f"{self._prefix}{self.plans % 100:02}{number % 100:02}"

    def is_call_of_plan(self, call_id: str) -> bool:
        """Whether a call is one of this run's plans."""
        return len(call_id) == 9 and call_id.startswith(self._prefix)
