"""The plugin's event."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["ToolsOfferedEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ToolsOfferedEvent(Event):
    """Tools are sent to the model from now on, after those that are sent already.

    Args:
        tools: their names.
        why: ``"prompt"``: found for the user's words, or pinned; ``"call"``: the model found or called them.
        sent: how many are sent now.
        total: how many there are.
    """

    tools: tuple[str, ...] = ()
    why: str = "prompt"
    sent: int = 0
    total: int = 0
