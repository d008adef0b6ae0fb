"""The settings of the plugin: the table ``[plugins.retry]``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from attrs import Attribute, field, frozen

from locus.models import Model

__all__ = ["BreakerSettings", "RetrySettings"]


def _counted(_: object, attribute: Attribute[Any], value: int) -> None:
    if value < 0:
        raise ValueError(f"{attribute.name} is 0 or more")


def _some(_: object, attribute: Attribute[Any], value: int) -> None:
    if value < 1:
        raise ValueError(f"{attribute.name} is 1 or more")


def _seconds(_: object, attribute: Attribute[Any], value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{attribute.name} is a finite number of seconds, 0 or more")


def _share(_: object, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 < value <= 1:
        raise ValueError(f"{attribute.name} is a share of the calls: more than 0, at most 1")


def _models(value: Any) -> tuple[str | Model, ...]:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _known(_: object, attribute: Attribute[Any], value: tuple[Any, ...]) -> None:
    for model in value:
        if isinstance(model, type) or not isinstance(model, str | Model):
            raise ValueError("fallback lists models: 'provider:model', or objects that are a Model")


@frozen(kw_only=True)
class BreakerSettings:
    """When a circuit breaker opens, and for how long.

    Args:
        failures: so many failures in a row open it.
        rate: a share of failures among the last ``window`` calls, above 0.0 up to 1.0, that opens it too; None = only
            failures in a row count. With fewer calls than ``window`` there is no share.
        window: how many calls the share is of.
        cooldown: seconds until one call may try again; if that fails, so long once more.
    """

    failures: int = field(default=5, validator=_some)
    rate: float | None = field(default=None, validator=_share)
    window: int = field(default=20, validator=_some)
    cooldown: float = field(default=30.0, validator=_seconds)


@frozen(kw_only=True)
class RetrySettings:
    """What is tried again, how often, and who stands in.

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

    max_retries: int = field(default=3, validator=_counted)
    backoff: float = field(default=1.0, validator=_seconds)
    max_backoff: float = field(default=30.0, validator=_seconds)
    max_retry_after: float = field(default=120.0, validator=_seconds)
    retry_empty: bool = True
    fallback: tuple[str | Model, ...] = field(default=(), converter=_models, validator=_known)
    model_breaker: BreakerSettings | None = None
    tool_breaker: BreakerSettings | None = None
    loop_breaker: BreakerSettings | None = None
