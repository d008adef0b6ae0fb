"""The leaves: limits on what a run may use, goals that say when it is done, and one that says it goes nowhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, final

from attrs import Attribute, field

from locus.core._answers import Bound, Bounds, Reading, Satisfied
from locus.core._condition import TerminationCondition, register_condition
from locus.core._predicates import Predicate, function
from locus.core.executions import ToolExecution
from locus.core.frozen import frozen
from locus.core.messages import ANSWER_FAULTS, ASSISTANT, WITHHELD, Message
from locus.core.patterns import Pattern
from locus.core.state import AgentState


class _Leaf(TerminationCondition):
    """A leaf that does not look at the number of iterations: all but `MaxIterations`."""

    __slots__ = ()

    reads_iteration: ClassVar[bool] = False


# -- limits -------------------------------------------------------------------------------------------------------


def _must_be(what: str, is_valid: Callable[[Any], bool]) -> Callable[[Any, Attribute[Any], Any], None]:
    def check(leaf: Any, argument: Attribute[Any], value: Any) -> None:
        if not is_valid(value):
            raise ValueError(f"{type(leaf).__name__}({argument.alias}) must be {what}, got {value!r}")

    return check


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _amount(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number, 0 or more, got {value!r}")
    return float(value)


@final
@register_condition
@frozen(repr=False)
class MaxIterations(TerminationCondition):
    """Stop after n iterations: the n-th may finish its tools and its reflection, Think n + 1 does not start.

    Args:
        n: iterations, 1 or more.
    """

    n: int = field(validator=_must_be("an integer, 1 or more", lambda n: _is_whole(n, 1)))

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


@final
@register_condition
@frozen(repr=False)
class TokenLimit(_Leaf):
    """Stop when the run has used more than n tokens, prompt and completion together.

    Args:
        n: tokens, 0 or more; None reads `AgentState.token_budget`, and where that is None never stops.
    """

    n: int | None = field(
        default=None, validator=_must_be("an integer, 0 or more", lambda n: n is None or _is_whole(n, 0))
    )

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
        """No call starts beyond n tokens; a budget that is kept in the state is not known here."""
        if self.n is None:
            return Bounds()
        return Bounds(
            tokens=Bound(self.n, "the tokens of the calls under way, here and in children, when it is exceeded")
        )


@final
@register_condition
@frozen(repr=False)
class ToolCallLimit(_Leaf):
    """Stop after n calls of tools; calls of the same turn that are beyond it get an error result and are not started.

    A call that the cache answered counts, one that was refused or rejected does not.

    Args:
        n: calls, 0 or more.
    """

    n: int = field(validator=_must_be("an integer, 0 or more", lambda n: _is_whole(n, 0)))

    def check(self, state: AgentState) -> bool:
        """Whether n calls were started."""
        return state.started_calls >= self.n

    def reading(self, state: AgentState) -> Reading:
        """Calls that were started."""
        made = state.started_calls
        return Reading(made, self.n, max(0, self.n - made), f"{made} of {self.n} tool calls")

    def bounds(self) -> Bounds:
        """Exactly n calls, where the run's end depends on nothing else; a body may be entered again for one call."""
        overshoot = "nothing; a call counts once, also when a hook's Retry or a resume enters its body again"
        return Bounds(tool_calls=Bound(self.n, overshoot))


def _seconds(value: float | timedelta) -> float:
    return _amount("TimeLimit(seconds)", value.total_seconds() if isinstance(value, timedelta) else value)


@final
@register_condition
@frozen(repr=False)
class TimeLimit(_Leaf):
    """Stop when the run has been at work for so long; waiting for a person and downtime do not count.

    Args:
        seconds: a number, or a timedelta.
    """

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
        raise ValueError(f"Deadline(at) must be a datetime with a time zone, got {value!r}")
    if at.tzinfo is None:
        raise ValueError(f"Deadline(at) is {value!r}, without a time zone; use {at.replace(tzinfo=UTC)!r}")
    return at.astimezone(UTC)


@final
@register_condition
@frozen(repr=False)
class Deadline(_Leaf):
    """Stop at a moment, however long the run has been at work.

    Args:
        at: a datetime with a time zone, or its ISO 8601 form; kept in UTC.
    """

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
class CostLimit(_Leaf):
    """Stop when the run has cost so much.

    Args:
        dollars: the limit, 0 or more; reaching it stops, so that no call starts on an empty purse.
        unknown_price: dollars per million tokens, of the request and the answer alike, to charge for a model
            whose price is not known. Without it, an agent with such a model is refused when it is built.
    """

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
        return Bounds(
            dollars=Bound(self.dollars, "the price of the calls under way, here and in children, when it is reached")
        )


def _answer(state: AgentState) -> Message | None:
    """The assistant message that would be the final one: the newest message, asking for no tool."""
    if state.pending_revision or not state.messages:
        return None
    last = state.messages[-1]
    return last if last.role is ASSISTANT and not last.tool_calls else None


@final
@register_condition
@frozen(repr=False)
class NoToolCalls(_Leaf):
    """Stop when the model answers without asking for a tool: the natural "I am done".

    An answer that a reviewer has sent back (`AgentState.pending_revision`) does not count. One that is faulty
    (`AgentState.answer_fault`) ends the run under the name of its fault, such as ``"Truncated"``.
    """

    def check(self, state: AgentState) -> bool:
        """Whether the newest message is such an answer, or one that was stopped while it asked for tools."""
        if state.pending_revision or not state.messages:
            return False
        last = state.messages[-1]
        return last.role is ASSISTANT and (not last.tool_calls or state.answer_fault in WITHHELD)

    def evaluate(self, state: AgentState) -> Satisfied | None:
        """The name of the condition, or of what is wrong with the answer; or None."""
        if not self.check(state):
            return None
        reason = state.answer_fault or self.name
        return Satisfied(reason, (reason,), self.reading(state).text)

    def reading(self, state: AgentState) -> Reading:
        """The number of tool calls that the newest message asks for."""
        if state.pending_revision:
            return Reading(text="the answer was sent back for revision")
        if not state.messages or state.messages[-1].role is not ASSISTANT:
            return Reading(text="the newest message is not the model's")
        calls = len(state.messages[-1].tool_calls)
        if fault := ANSWER_FAULTS.get(state.answer_fault):
            return Reading(calls, 0, 0 if self.check(state) else calls, fault)
        text = f"the model asks for {calls} tool(s)" if calls else "the model has answered"
        return Reading(calls, 0, calls, text)


def _predicate(
    value: Callable[[Mapping[str, Any]], bool] | str | None,
) -> Callable[[Mapping[str, Any]], bool] | None:
    found: Callable[[Mapping[str, Any]], bool] | None = None if value is None else function(value)
    return found


@final
@register_condition
@frozen(repr=False)
class ToolCalled(_Leaf):
    """Stop when a tool was called.

    Args:
        name: the tool's name (kept as ``tool``).
        predicate: a pure function of the call's arguments, or its dotted name; it returns True or False.
        require_success: only a call that succeeded, from the cache or not, counts; with False one that failed
            in its body counts too. A call that was refused or rejected never counts.
    """

    tool: str = field(alias="name", validator=_must_be("the name of a tool", _is_text))
    predicate: Callable[[Mapping[str, Any]], bool] | None = field(default=None, converter=_predicate)
    require_success: bool = field(
        default=True, validator=_must_be("True or False", lambda value: isinstance(value, bool))
    )
    _test: Predicate | None = field(init=False, eq=False)

    @_test.default
    def _make_test(self) -> Predicate | None:
        return None if self.predicate is None else Predicate(self.name, self.predicate)

    def _first_match(self, state: AgentState) -> ToolExecution | None:
        return state.first_execution(self.tool, self._test, require_success=self.require_success)

    def check(self, state: AgentState) -> bool:
        """Whether such a call was made in this run."""
        return self._first_match(state) is not None

    def reading(self, state: AgentState) -> Reading:
        """The first such call."""
        found = self._first_match(state)
        if found is None:
            how = " successfully" if self.require_success else ""
            which = "" if self.predicate is None else " with matching arguments"
            return Reading(value=False, threshold=True, text=f"{self.tool} was not called{how}{which} yet")
        text = f"{self.tool} was called in iteration {found.iteration + 1}"
        return Reading(value=True, threshold=True, text=text)


def _threshold(value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"ConfidenceMet(threshold) must be a number from 0.0 to 1.0, got {value!r}")
    return float(value)


@final
@register_condition
@frozen(repr=False)
class ConfidenceMet(_Leaf):
    """Stop when the confidence is at least the threshold.

    Args:
        threshold: 0.0 to 1.0; None reads `AgentState.confidence_threshold`.
    """

    threshold: float | None = field(default=None, converter=_threshold)

    def _limit(self, state: AgentState) -> float:
        return state.confidence_threshold if self.threshold is None else self.threshold

    def check(self, state: AgentState) -> bool:
        """Whether the threshold is reached."""
        return state.confidence >= self._limit(state)

    def reading(self, state: AgentState) -> Reading:
        """The confidence."""
        limit = self._limit(state)
        text = f"confidence {state.confidence:.2f}, needs {limit:.2f}"
        return Reading(state.confidence, limit, max(0.0, limit - state.confidence), text)


def _regex(value: str) -> str:
    if not isinstance(value, str):
        raise ValueError(
            f"TextMention(regex) must be a string with its flags inside, such as '(?i)done', got {value!r}"
        )
    return value


@final
@register_condition
@frozen(repr=False)
class TextMention(_Leaf):
    """Stop when the final message matches a regular expression anywhere.

    The final message is the newest one, when it is the model's and asks for no tool: words beside a tool call
    are not an answer yet, and stopping there would leave the call without its result.

    Args:
        regex: in the syntax of RE2, which takes time in proportion to the answer whatever the pattern; case-sensitive
            unless it starts with ``(?i)``. See `locus.core.Pattern`.

    Raises:
        ValueError: it is not a pattern of RE2, which has no look-around and no back-references.
    """

    regex: str = field(converter=_regex)
    _pattern: Pattern = field(init=False, eq=False)

    @_pattern.default
    def _compile(self) -> Pattern:
        try:
            return Pattern(self.regex)
        except ValueError as e:
            raise ValueError(f"TextMention(regex) must be a regular expression, got {self.regex!r}: {e}") from None

    def _match(self, state: AgentState) -> str | None:
        answer = _answer(state)
        return None if answer is None else self._pattern.search(answer.text)

    def check(self, state: AgentState) -> bool:
        """Whether the final message matches."""
        return self._match(state) is not None

    def reading(self, state: AgentState) -> Reading:
        """The text that matches."""
        found = self._match(state)
        if found is not None:
            return Reading(found, self.regex, text=f"the answer mentions {found!r}")
        missing = "the model has not answered yet" if _answer(state) is None else f"no match of {self.regex!r}"
        return Reading(None, self.regex, text=missing)


def _state_predicate(value: Callable[[AgentState], bool] | str) -> Callable[[AgentState], bool]:
    found: Callable[[AgentState], bool] = function(value)
    return found


@final
@register_condition
@frozen(repr=False)
class CustomCondition(_Leaf):
    """Stop when a function of the state says so.

    Args:
        fn: ``(state) -> bool``, pure, or its dotted name. It is called once for a state, wherever it is in the
            condition. One that raises, or returns something else, ends the run with `ConditionError`.
        name: what a stop is reported as; the default is ``"CustomCondition"`` (kept as ``label``).
    """

    fn: Callable[[AgentState], bool] = field(converter=_state_predicate)
    label: str | None = field(
        default=None,
        alias="name",
        validator=_must_be("the text that a stop is reported as", lambda value: value is None or _is_text(value)),
    )

    _test: Predicate = field(init=False, eq=False)

    @_test.default
    def _make_test(self) -> Predicate:
        return Predicate(self.name, self.fn)

    @property
    def name(self) -> str:
        """The given name, or the name of the class."""
        return self.label or type(self).__name__

    def check(self, state: AgentState) -> bool:
        """What the function says."""
        return state.satisfies(self._test)

    def reading(self, state: AgentState) -> Reading:
        """What the function says."""
        said = self.check(state)
        name = getattr(self.fn, "__qualname__", type(self.fn).__qualname__)
        return Reading(value=said, threshold=True, text=f"{name} returned {said}")


def _identity(execution: ToolExecution) -> object:
    # Executions built by hand, and calls that were refused before they had a key, are compared in full.
    return execution.key or (execution.tool_name, execution.arguments)


def same_call(a: ToolExecution, b: ToolExecution) -> bool:
    """Whether two executions were asked for with the same tool and arguments, cached or not."""
    return _identity(a) == _identity(b)


@final
@register_condition
@frozen(repr=False)
class NoProgress(_Leaf):
    """Stop when the last turns asked for the same calls each: the same tools with the same arguments.

    The order of the calls of a turn, and how often one is in it, make no difference; cache hits count.

    Args:
        window: how many such turns in a row, 2 or more; None reads `AgentState.tool_loop_threshold`, where less than 2
            means never.
    """

    window: int | None = field(
        default=None, validator=_must_be("an integer, 2 or more", lambda value: value is None or _is_whole(value, 2))
    )

    def _turns_needed(self, state: AgentState) -> int:
        return state.tool_loop_threshold if self.window is None else self.window

    def _count_repeats(self, state: AgentState, most: int) -> int:
        last: set[object] | None = None
        count = 0
        for _, turn in groupby(reversed(state.tool_executions), attrgetter("iteration")):
            calls = set(map(_identity, turn))
            if count == most or (last is not None and calls != last):
                break
            last, count = calls, count + 1
        return count

    def check(self, state: AgentState) -> bool:
        """Whether the last turns are that many with the same calls."""
        needed = self._turns_needed(state)
        return needed >= 2 and self._count_repeats(state, needed) == needed

    def reading(self, state: AgentState) -> Reading:
        """Turns with the same calls at the end, counted up to the window."""
        needed = self._turns_needed(state)
        if needed < 2:
            return Reading(None, needed, text=f"off (tool_loop_threshold is {needed})")
        count = self._count_repeats(state, needed)
        return Reading(count, needed, needed - count, f"{count} of {needed} turns in a row with the same calls")
