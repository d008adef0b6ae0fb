"""The settings of the plugin: the table ``[plugins.reflexion]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, frozen
from attrs.validators import in_

from locus_kit.validators import integer, optional, seconds, strings, zero_to_none

__all__ = ["Judge", "ReflexionSettings"]

#: Who judges: a model, or rules.
Judge = Literal["model", "rules"]


def _names(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value  # a lone string is reported as such


@frozen(kw_only=True)
class ReflexionSettings:
    """When to reflect, and who judges.

    Args:
        interval: reflect after every so many iterations; None, or 0 in a file, only after a tool error and when the
            calls go in circles, which are reasons to reflect in any case.
        after: names of tools, or patterns of them (``submit_*``); an iteration in which one of them succeeded is judged
            as well, whatever the interval.
        judge: ``"model"`` asks a model; ``"rules"`` asks no model, see `judge_by_rules`.
        model: the judge, ``"provider:model"``; None = the agent's own model.
        timeout: seconds after which a judge's answer is no longer waited for; None = as long as the run may take.
        max_tokens: of one answer of the judge; None = the provider's default.
        window: how many calls before the last step the judge is shown, and how many the rules look at.
        max_chars: how many characters of each text (a result, arguments, the request) the judge is shown; of a
            longer one the beginning and the end.
        lessons: how many lessons of failed steps are kept for the next attempt on the thread; 0 = none.

    Raises:
        ValueError: a number is out of range.
    """

    interval: int | None = field(default=2, converter=zero_to_none, validator=optional(integer(1)))
    after: tuple[str, ...] = field(default=(), converter=_names, validator=strings)
    judge: Judge = field(default="model", validator=in_(("model", "rules")))
    model: str | None = None
    timeout: float | None = field(default=60.0, validator=optional(seconds))
    max_tokens: int | None = field(default=None, validator=optional(integer(1)))
    window: int = field(default=6, validator=integer(1))
    max_chars: int = field(default=2000, validator=integer(100))
    lessons: int = field(default=0, validator=integer(0))
