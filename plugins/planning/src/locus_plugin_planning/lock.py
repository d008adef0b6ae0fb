"""Locked plans: what they may leave open, what the planner sees, and which calls may run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from locus.core.messages import Role, TextBlock, ToolCall
from locus.core.state import AgentState
from locus.plugin import Reject, RunContext, StashKey
from locus.tools import ArgumentError
from locus_kit.judging import find_request
from locus_plugin_planning.errors import AnswerUnusable
from locus_plugin_planning.plan import Plan

__all__ = ["check_locked", "decide", "is_imported", "words_of_the_user"]

#: Under this key an imported thread says how many of its messages, the system prompt not counted, were imported.
_IMPORTED = "locus.imported"

#: The turn whose calls are decided about, and which of them have each step, by its id.
_TAKEN: StashKey[tuple[int, dict[str, str]]] = StashKey("planning: the steps of a locked plan that calls have taken")


def check_locked(plan: Plan) -> None:
    """Reject a plan that leaves arguments or steps to be decided after something was read.

    Raises:
        AnswerUnusable: it does.
    """
    open_steps = [step.id for step in plan.steps if step.decide or step.decision_point]
    if open_steps:
        raise AnswerUnusable(
            f"steps {', '.join(open_steps)}: this plan is locked, so it cannot have `decide` or `decision_point`; "
            "write each argument as a value or as a reference to a result"
        )


def words_of_the_user(state: AgentState) -> AgentState:
    """The state with only what the user has written here: no results, answers, documents, or imported messages."""
    kept = [
        evolve(message, content=[block for block in message.content if type(block) is TextBlock])
        for message in state.messages[_count_imported(state) :]
        if message.role is Role.USER and message.plugin is None
    ]
    return evolve(state, messages=kept)


def is_imported(state: AgentState) -> bool:
    """Whether the request of the run was imported, and its plan with it: who wrote them is not known."""
    imported = _count_imported(state)
    return imported > 0 and ((at := find_request(state)) is None or at < imported)


def _count_imported(state: AgentState) -> int:
    """How many messages were imported, the system prompt before them included."""
    imported = state.metadata.get(_IMPORTED, 0)
    return imported + sum(message.role is Role.SYSTEM for message in state.messages[:1]) if imported else 0


def decide(call: ToolCall, run: RunContext, steps: Iterable[tuple[str, dict[str, Any]]] | None) -> Reject | None:
    """Let a call run that is a next step of the plan, each step once; reject any other.

    Args:
        call: with the arguments that the body would get.
        run: the run.
        steps: the next steps of the plan that call this tool, their ids and arguments; None for a run that has no plan,
            such as a child, where calls run that change nothing and send nothing out.
    """
    tool = run.registry.get(call.name)
    if steps is None:
        is_harmless = tool is not None and tool.effect == "pure" and not tool.is_egress
        return None if is_harmless else Reject("the plan is locked, and this call is not in it")
    turn, taken = run.stash.get(_TAKEN, (-1, {}))
    if turn != run.state.iteration:
        taken = {}
    for step_id, arguments in steps:
        bound = None if tool is None else tool.bind(arguments)
        if bound is None or isinstance(bound, ArgumentError) or bound.data != call.arguments:
            continue
        if taken.get(step_id, call.id) == call.id and sum(each.id == call.id for each in run.state.unanswered) == 1:
            run.stash[_TAKEN] = run.state.iteration, {**taken, step_id: call.id}
            return None
    return Reject("the plan is locked, and this call is not its next step")
