"""The plugin's event."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["GuardrailEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class GuardrailEvent(Event):
    """A rule has found something; it never says what.

    Args:
        rule: its name, or ``"size"`` or ``"topics"``.
        where: ``"prompt"``, ``"arguments"``, ``"result"`` or ``"answer"``.
        action: ``"report"``, ``"redact"`` or ``"block"``.
        times: how often, in this text.
        tool_name, call_id: of arguments and results.
    """

    rule: str = ""
    where: str = ""
    action: str = ""
    times: int = 1
    tool_name: str = ""
    call_id: str = ""
