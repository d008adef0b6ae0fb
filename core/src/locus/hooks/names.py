"""The names of hooks, apart from their specifications: all that the loop needs of them."""

from __future__ import annotations

__all__ = ["PROJECT", "observer_hook"]

#: What every hook's name begins with, and pluggy's project name. Permanent API: changing it would silently switch
#: off every plugin.
PROJECT = "locus"


def observer_hook(event_type: str) -> str:
    """The name of the hook that hears one kind of event, by the event's `type` tag."""
    return f"{PROJECT}_on_{event_type}"
