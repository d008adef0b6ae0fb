"""Which tools a run sends its model: names in the state, read and extended by pure functions.

They are a part of the state, so they survive a crash, a fork and the end of a turn as they are, and nothing is ranked
twice. What is added comes behind what is there: the tools of a request begin with those of the request before.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from locus.core.messages import Role
from locus.core.state import AgentState
from locus.tools import ToolRegistry
from locus_plugin_toolsearch.search import SEARCH, names_in

__all__ = ["KEY", "extend_names", "find_called", "find_pinned", "prompt", "read_names"]

#: Where the names are kept in the state's metadata.
KEY = "toolsearch"


def read_names(state: AgentState) -> tuple[str, ...] | None:
    """The names that the state has, in the order in which they were sent; None when nothing was chosen yet."""
    kept = state.metadata.get(KEY)
    return None if kept is None else tuple(kept)


def extend_names(names: tuple[str, ...], more: Iterable[str], registry: ToolRegistry) -> tuple[str, ...]:
    """The names, and behind them those of more that are new and exist; the same object when nothing is new."""
    known = set(names)
    new = [name for name in dict.fromkeys(more) if name not in known and name in registry]
    return (*names, *new) if new else names


def find_pinned(patterns: Iterable[str], state: AgentState, registry: ToolRegistry) -> list[str]:
    """The names of tools that are always sent, in the order of registration, and that of the search behind them."""
    wanted = tuple(patterns)
    chosen = [
        name
        for name in registry.names
        if name != SEARCH and (name in state.terminal_tools or any(fnmatchcase(name, p) for p in wanted))
    ]
    return [*chosen, SEARCH]


def prompt(state: AgentState) -> str:
    """The user's newest words, those of plugins left out."""
    for message in reversed(state.messages):
        if message.role is Role.USER and message.plugin is None:
            return message.text
    return ""


def find_called(state: AgentState) -> list[str]:
    """What the last turn's calls ask for: the tools that were called, and those that were searched and found.

    A tool that was called without having been sent is known to the model, and what it was told of a mistake in the
    arguments helps it more once it sees the parameters.
    """
    batch = []
    for execution in reversed(state.tool_executions):
        if execution.iteration != state.iteration - 1:
            break
        batch.append(execution)
    names: list[str] = []
    for execution in reversed(batch):
        names.append(execution.tool_name)
        if execution.tool_name == SEARCH and execution.result is not None:
            names += names_in(execution.result)
    return names
