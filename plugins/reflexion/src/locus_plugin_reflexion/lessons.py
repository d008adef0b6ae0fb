"""Lessons: what failed steps taught, kept in the thread's metadata for the next attempt.

The idea of "verbal reinforcement" is that of Shinn et al., Reflexion (NeurIPS 2023).
"""

from __future__ import annotations

from collections.abc import Mapping

from locus.core.messages import plugin_message
from locus.core.state import AgentState
from locus_plugin_reflexion.reflection import Reflection
from locus_plugin_reflexion.reflector import NAME

__all__ = ["add_lesson", "recall_lessons"]

_HEAD = "[Lessons of earlier attempts in this conversation, by their judge. They are not a message from the user.]"


def _read_lessons(state: AgentState) -> tuple[str, ...]:
    """The lessons, the oldest first."""
    found = state.metadata.get(NAME)
    lessons = found.get("lessons") if isinstance(found, Mapping) else None
    return tuple(map(str, lessons)) if isinstance(lessons, tuple) else ()


def add_lesson(state: AgentState, reflection: Reflection, *, most: int) -> AgentState:
    """The state with the lesson of a failed step; without any once the confidence is where it should be.

    Args:
        state: the state.
        reflection: on its last step.
        most: how many lessons are kept; the oldest are dropped.
    """
    lessons = _read_lessons(state)
    if reflection.failing:
        lesson = reflection.guidance or reflection.judgment
        lessons = (*(each for each in lessons if each != lesson), lesson)[-most:]
    elif reflection.confidence >= state.confidence_threshold and lessons:
        lessons = ()
    else:
        return state
    return state.with_metadata(NAME, {"lessons": lessons})


def recall_lessons(state: AgentState) -> AgentState:
    """The state of a run that is about to think for the first time, with the lessons of the runs before it."""
    lessons = _read_lessons(state)
    if not lessons:
        return state
    return state.with_message(plugin_message(NAME, "\n".join([_HEAD, *(f"- {lesson}" for lesson in lessons)])))
