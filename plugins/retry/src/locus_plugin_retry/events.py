"""The plugin's events. They name kinds of errors, and never contain a provider's text."""

from __future__ import annotations

from attrs import frozen

from locus.plugin import Event, register_event

__all__ = ["CircuitBreakerEvent", "ModelFallbackEvent", "ModelRetryEvent"]


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ModelRetryEvent(Event):
    """A model failed and is asked again.

    Args:
        model: the model.
        attempt: how often it has failed in this call, from 1.
        wait: seconds until it is asked again.
        error_type: the class of the error; ``""`` for an empty answer.
        status: the HTTP status, where there was one.
    """

    model: str = ""
    attempt: int = 0
    wait: float = 0.0
    error_type: str = ""
    status: int | None = None


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ModelFallbackEvent(Event):
    """A model is given up and the next one is asked.

    Args:
        model: the one that is given up.
        fallback: the next one.
        reason: why.
    """

    model: str = ""
    fallback: str = ""
    reason: str = ""


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class CircuitBreakerEvent(Event):
    """A circuit breaker opened or closed.

    Args:
        kind: ``"model"``, ``"tool"`` or ``"loop"``.
        name: of the model or the tool; ``""`` for the loop.
        is_open: it opened; else it closed.
        cooldown: seconds until something is tried again; 0.0 when it closed.
    """

    kind: str = ""
    name: str = ""
    is_open: bool = False
    cooldown: float = 0.0
