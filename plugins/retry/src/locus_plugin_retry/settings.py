"""The settings of the plugin: the table ``[plugins.retry]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import field, frozen
from attrs.validators import deep_iterable

from locus.models import Model
from locus_kit.validators import integer, model_or_name, number, optional

__all__ = ["BreakerSettings", "RetrySettings"]


def _to_models(value: Any) -> tuple[str | Model, ...]:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


@frozen(kw_only=True)
class BreakerSettings:
    """When a circuit breaker opens, and for how long.

    Args:
        failures: so many failures in a row open it.
        rate: a share of failures among the last ``window`` calls, above 0.0 up to 1.0, that opens it too; None = only
            failures in a row count. With fewer calls than ``window`` no share is computed.
        window: how many calls the share is of.
        cooldown: seconds until one call may try again; if that fails, so long once more.
    """

    failures: int = field(default=5, validator=integer(1))
    rate: float | None = field(default=None, validator=optional(number(above=0, high=1)))
    window: int = field(default=20, validator=integer(1))
    cooldown: float = field(default=30.0, validator=number(0, unit="seconds"))


@frozen(kw_only=True)
class RetrySettings:
    """What is tried again, how often, and the fallback models.

    Args:
        max_retries: how often each model is asked again after its first failure in one call.
        backoff: seconds; the n-th wait is a random time up to ``backoff * 2**(n-1)``.
        max_backoff: seconds; the longest of these waits.
        max_retry_after: seconds; a provider that asks for a longer wait is given up at once.
        retry_empty: ask again when an answer has neither text nor tool calls.
        fallback: models, ``"provider:model"`` or `Model`s, asked in order when the one before is given up.
        model_breaker: of each model, by its name; None = none.
        tool_breaker: of each tool, by its name; None = none.
        loop_breaker: of the loop: it counts iterations; None = none.
    """

    max_retries: int = field(default=3, validator=integer(0))
    backoff: float = field(default=1.0, validator=number(0, unit="seconds"))
    max_backoff: float = field(default=30.0, validator=number(0, unit="seconds"))
    max_retry_after: float = field(default=120.0, validator=number(0, unit="seconds"))
    retry_empty: bool = True
    fallback: tuple[str | Model, ...] = field(default=(), converter=_to_models, validator=deep_iterable(model_or_name))
    model_breaker: BreakerSettings | None = None
    tool_breaker: BreakerSettings | None = None
    loop_breaker: BreakerSettings | None = None
