"""The plugin's event."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["ScanItemEvent"]


@register_event
@frozen(kw_only=True)
class ScanItemEvent(Event):
    """An item of a scan is done.

    Args:
        key: of the item.
        name: of the item.
        done: how many are done, this one included; after a resume, those of before as well.
        total: how many there are.
        error: why the item has no row, or None.
    """

    key: str = ""
    name: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None
