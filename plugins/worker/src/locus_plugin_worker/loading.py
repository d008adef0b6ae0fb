"""``shop:agent``: the agent that a name on the command line means."""

from __future__ import annotations

from typing import Any

from locus import Agent
from locus.core.errors import InputError
from locus_kit import agents

__all__ = ["load_agent"]


def load_agent(text: str) -> Agent[Any, Any]:
    """The agent that ``MODULE:NAME`` or ``FILE.py:NAME`` names; a function without parameters is called for it.

    Raises:
        InputError: the module cannot be loaded, or has no such agent, or the agent has no name.
    """
    found: Agent[Any, Any] = agents.load_agent(text)
    if not found.name:
        name = text.rpartition(":")[2]
        raise InputError(
            f"{text} has no name, so a worker could not know which runs are its own; write Agent(..., name={name!r})"
        )
    return found
