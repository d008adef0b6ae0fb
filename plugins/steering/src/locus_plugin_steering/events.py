"""The plugin's event."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["SteeringEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class SteeringEvent(Event):
    """The judge has voted on a call, or failed to.

    Args:
        tool_name, call_id: the call.
        decision: what becomes of it: ``"proceed"``, ``"reject"``, ``"cancel"`` or ``"ask"``.
        reason: the judge's.
        failure: why no vote was given, or None.
    """

    tool_name: str = ""
    call_id: str = ""
    decision: str = ""
    reason: str = ""
    failure: str | None = None
