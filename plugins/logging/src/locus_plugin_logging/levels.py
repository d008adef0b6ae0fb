"""How important an event is, and what a level may be called."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from locus import TerminateEvent, ToolCompleteEvent
from locus.plugin import Event

__all__ = ["LEVELS", "level_number", "level_of"]

#: What is not named here, such as the events of plugins, is INFO.
LEVELS: dict[str, int] = {
    "model_chunk": logging.DEBUG,
    "tool_progress": logging.DEBUG,
    "checkpoint": logging.DEBUG,
    "model_restart": logging.WARNING,
    "model_error": logging.ERROR,
    "hook_failed": logging.ERROR,
}


def level_number(level: str | int) -> int:
    """The number of a level.

    Args:
        level: a name known to `logging`, in any case, or a number from 0.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(level, str):
        found = logging.getLevelNamesMapping().get(level.strip().upper())
        if found is not None:
            return found
    elif not isinstance(level, bool) and level >= 0:
        return level
    known = ", ".join(sorted({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, key=logging.getLevelNamesMapping().get))  # type: ignore[arg-type]
    raise ValueError(f"{level!r} is not a level; expected {known}, or a whole number from 0 (INFO is {logging.INFO})")


def level_of(event: Event, levels: Mapping[str, int]) -> int:
    """The level of one event.

    Args:
        event: as it was emitted.
        levels: what the settings say, by type; they take precedence.
    """
    said = levels.get(event.type)
    if said is not None:
        return said
    if isinstance(event, ToolCompleteEvent) and event.error is not None:
        return logging.WARNING  # the model reads it and may correct itself
    if isinstance(event, TerminateEvent):
        if event.error is not None:
            return logging.ERROR
        return logging.WARNING if event.ending.is_cancelled else logging.INFO
    return LEVELS.get(event.type, logging.INFO)
