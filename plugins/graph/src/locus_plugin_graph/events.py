"""The plugin's events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from locus.core import EMPTY, freeze
from locus.plugin import Event, register_event

__all__ = ["EVENTS", "NodeCompleteEvent", "NodeStartEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class NodeStartEvent(Event):
    """A task is about to be entered.

    Args:
        node: the name of its node.
        task: its place in the super-step, from 0.
        attempt: how often it was tried before.
    """

    node: str = ""
    task: int = 0
    attempt: int = 0


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class NodeCompleteEvent(Event):
    """A task has ended.

    Args:
        node: the name of its node.
        task: its place in the super-step, from 0.
        update: what it wrote, before it is merged.
        error: what it raised, as text, or None.
        replayed: its result was on record.
    """

    node: str = ""
    task: int = 0
    update: Mapping[str, Any] = field(default=EMPTY, converter=freeze)
    error: str | None = None
    replayed: bool = False


EVENTS: tuple[type[Event], ...] = (NodeStartEvent, NodeCompleteEvent)
