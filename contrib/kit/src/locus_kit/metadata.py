"""What a plugin keeps in the state for one run, so that a resume finds it and the thread's next run does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core.state import AgentState

__all__ = ["read_run_data", "with_run_data"]

_RUN = "run"


def read_run_data(state: AgentState, name: str) -> Mapping[str, Any]:
    """Read what `with_run_data` wrote in this run.

    Args:
        state: the state.
        name: the key in ``state.metadata``: the plugin's name.

    Returns:
        The data; empty if an earlier run of the thread wrote them, or something else is under that key.
    """
    found = state.metadata.get(name)
    return found if isinstance(found, Mapping) and found.get(_RUN) == state.run_id else {}


def with_run_data(state: AgentState, name: str, data: Mapping[str, Any]) -> AgentState:
    """Return the state with data that belong to this run.

    Args:
        state: the state.
        name: the key in ``state.metadata``: the plugin's name.
        data: plain data; the key ``"run"`` is taken.
    """
    return state.with_metadata(name, {_RUN: state.run_id, **data})
