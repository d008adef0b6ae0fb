"""``FILE.py:NAME``: the agent or the graph that a name on the command line means."""

from __future__ import annotations

from typing import Any

from locus import Agent
from locus_kit import agents

__all__ = ["load_agent"]


def load_agent(text: str) -> Any:
    """The agent, or the compiled graph, that ``FILE.py:NAME`` or ``MODULE:NAME`` names; a function is called for it.

    Raises:
        InputError: the file or module cannot be loaded, or has no such agent.
    """
    return agents.load_agent(text, is_agent=_is_agent)


def _is_agent(value: object) -> bool:
    """Whether it is an agent, or a compiled graph, which another distribution makes."""
    return isinstance(value, Agent) or (isinstance(getattr(value, "agent", None), Agent) and hasattr(value, "svg"))
