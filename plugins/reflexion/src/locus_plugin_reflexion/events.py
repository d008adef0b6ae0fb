"""The plugin's own event: a reflection that was due and did not come about."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["ReflectionFailedEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ReflectionFailedEvent(Event):
    """The judge failed, or its answer was invalid; the run continues as if it had not been asked.

    Args:
        error: what happened.
        error_type: the name of the exception: ``"ModelError"``, ``"NotOneObject"``, ``"BudgetExceeded"``, ...
    """

    error: str = ""
    error_type: str = ""
