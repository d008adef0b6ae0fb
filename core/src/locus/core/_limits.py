"""Leaves that bound what a run may spend: iterations, tokens, time and dollars.

All of them are monotone: once satisfied they stay so, because the totals of a run only grow.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, final

from attrs import field

from locus.core._bounds import Bound, Bounds
from locus.core._condition import TerminationCondition, register_condition
from locus.core._explain import Reading
from locus.core.frozen import frozen
from locus.core.state import AgentState

__all__ = ["CostLimit", "Deadline", "MaxIterations", "TimeLimit", "TokenLimit"]


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; it is an integer, {least} or more")
    return value


def _amount(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value!r}; it is a finite number, 0 or more")
    return float(value)


def _iterations(value: int) -> int:
    return _whole("MaxIterations(n)", value, 1)


@final
@register_condition
@frozen(repr=False)
class MaxIterations(TerminationCondition):
    """Stop after n iterations: the n-th may finish its tools and its reflection, Think n + 1 does not start.

    Args:
        n: iterations, 1 or more.
    """

    n: int = field(converter=_iterations)

    def check(self, state: AgentState) -> bool:
        """Whether n iterations are finished; the router asks with the count as Think would find it."""
        return state.iteration >= self.n

    def reading(self, state: AgentState) -> Reading:
        """Finished iterations."""
        done = state.iteration
        return Reading(done, self.n, max(0, self.n - done), f"{done} of {self.n} iterations")

    def bounds(self) -> Bounds:
        """Exactly n iterations."""
        return Bounds(iterations=self.n, guarantees_halt=True)


def _tokens(value: int | None) -> int | None:
    return None if value is None else _whole("TokenLimit(n)", value, 0)


@final
@register_condition
@frozen(repr=False)
class TokenLimit(TerminationCondition):
    """Stop when the run has used more than n tokens, prompt and completion together.

    Args:
        n: tokens, 0 or more; None reads `AgentState.token_budget`, and where that is None never stops.
    """

    reads_iteration: ClassVar[bool] = False

    n: int | None = field(default=None, converter=_tokens)

    def check(self, state: AgentState) -> bool:
        """Whether the limit is exceeded."""
        limit = state.token_budget if self.n is None else self.n
        return limit is not None and state.total_tokens_used > limit

    def reading(self, state: AgentState) -> Reading:
        """Tokens used."""
        limit, used = state.token_budget if self.n is None else self.n, state.total_tokens_used
        if limit is None:
            return Reading(used, text=f"{used:,} tokens, no limit (the state has no token_budget)")
        return Reading(used, limit, max(0, limit + 1 - used), f"{used:,} of {limit:,} tokens")

    def bounds(self) -> Bounds:
        """No call starts beyond n tokens; a budget that stands in the state is not known here."""
        if self.n is None:
            return Bounds()
        return Bounds(tokens=Bound(self.n, "the tokens of the calls under way when it is exceeded"))


def _seconds(value: float | timedelta) -> float:
    return _amount("TimeLimit(seconds)", value.total_seconds() if isinstance(value, timedelta) else value)


@final
@register_condition
@frozen(repr=False)
class TimeLimit(TerminationCondition):
    """Stop when the run has been at work for so long; waiting for a person and downtime do not count.

    Args:
        seconds: a number, or a timedelta.
    """

    reads_iteration: ClassVar[bool] = False

    seconds: float = field(converter=_seconds)

    def check(self, state: AgentState) -> bool:
        """Whether the time is used up."""
        return state.active_seconds >= self.seconds

    def reading(self, state: AgentState) -> Reading:
        """Seconds at work."""
        at_work = state.active_seconds
        left = max(0.0, self.seconds - at_work)
        return Reading(at_work, self.seconds, left, f"{at_work:.1f} of {self.seconds:g} seconds at work")

    def bounds(self) -> Bounds:
        """No call starts once the time is used up."""
        overshoot = "the time that calls under way need to end; their timeouts are capped to what is left"
        return Bounds(seconds=Bound(self.seconds, overshoot), guarantees_halt=True)


def _instant(value: datetime | str) -> datetime:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(at, datetime):
        raise ValueError(f"Deadline(at) is {value!r}; it is a datetime with a time zone")
    if at.tzinfo is None:
        raise ValueError(f"Deadline(at) is {value!r}, without a time zone; use {at.replace(tzinfo=UTC)!r}")
    return at.astimezone(UTC)


@final
@register_condition
@frozen(repr=False)
class Deadline(TerminationCondition):
    """Stop at a moment, however long the run has been at work.

    Args:
        at: a datetime with a time zone, or its ISO 8601 form; kept in UTC.
    """

    reads_iteration: ClassVar[bool] = False

    at: datetime = field(converter=_instant)

    def check(self, state: AgentState) -> bool:
        """Whether the last transition was stamped at that moment or later."""
        return state.updated_at >= self.at

    def reading(self, state: AgentState) -> Reading:
        """Seconds to go at the last transition."""
        left = max(0.0, (self.at - state.updated_at).total_seconds())
        at = self.at.isoformat()
        return Reading(state.updated_at.isoformat(), at, left, f"{left:.1f} seconds before {at}")

    def bounds(self) -> Bounds:
        """The run ends; how much time at work that leaves depends on when it starts."""
        return Bounds(guarantees_halt=True)


def _dollars(value: float) -> float:
    return _amount("CostLimit(dollars)", value)


def _price(value: float | None) -> float | None:
    return None if value is None else _amount("CostLimit(unknown_price)", value)


@final
@register_condition
@frozen(repr=False)
class CostLimit(TerminationCondition):
    """Stop when the run has cost so much.

    Args:
        dollars: the limit, 0 or more; reaching it stops, so that no call starts on an empty purse.
        unknown_price: dollars per million tokens, of the request and the answer alike, to charge for a model
            whose price is not known. Without it, an agent with such a model is refused when it is built.
    """

    reads_iteration: ClassVar[bool] = False

    dollars: float = field(converter=_dollars)
    unknown_price: float | None = field(default=None, converter=_price)

    def check(self, state: AgentState) -> bool:
        """Whether the money is spent."""
        return state.cost >= self.dollars

    def reading(self, state: AgentState) -> Reading:
        """Dollars spent."""
        left = max(0.0, self.dollars - state.cost)
        return Reading(state.cost, self.dollars, left, f"${state.cost:.4f} of ${self.dollars:g}")

    def bounds(self) -> Bounds:
        """No call starts once the money is spent."""
        return Bounds(dollars=Bound(self.dollars, "the price of the calls under way when it is reached"))
