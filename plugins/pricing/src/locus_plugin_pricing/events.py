"""The plugin's event."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["UnknownPriceEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class UnknownPriceEvent(Event):
    """A model call whose price is not known. What it cost is not in any total.

    Args:
        model: the model that answered.
        tokens: what the call used.
    """

    model: str = ""
    tokens: int = 0
