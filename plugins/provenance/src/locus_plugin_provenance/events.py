"""The plugin's event."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from locus.plugin import Event, register_event

__all__ = ["TaintedCallEvent"]


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class TaintedCallEvent(Event):
    """A call was found that someone other than the user may have chosen, in whole or in part.

    Args:
        tool_name, call_id: the call.
        decision: ``"ask"`` or ``"reject"``.
        reasons: what is tainted, and where it comes from, in words.
        sources: the names of the untrusted sources that the run has read.
    """

    tool_name: str = ""
    call_id: str = ""
    decision: str = ""
    reasons: tuple[str, ...] = field(default=(), converter=_texts)
    sources: tuple[str, ...] = field(default=(), converter=_texts)

    @property
    def shown(self) -> str:
        """Nothing: the question, or the result of the rejected call, says the same to a person."""
        return ""
