"""Leaves that say when the work is done: the answer, a tool, confidence, a text, a predicate of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, final

from attrs import field

from locus.core._condition import TerminationCondition, register_condition
from locus.core._explain import Reading
from locus.core._functions import ArgsTest, ask, function
from locus.core.executions import ToolExecution
from locus.core.frozen import frozen
from locus.core.messages import ASSISTANT, Message
from locus.core.state import AgentState

__all__ = ["ConfidenceMet", "CustomCondition", "NoToolCalls", "TextMention", "ToolCalled"]


def _answer(state: AgentState) -> Message | None:
    """The assistant message that would stand as the final one: the newest message, asking for no tool."""
    if state.pending_revision or not state.messages:
        return None
    last = state.messages[-1]
    return last if last.role is ASSISTANT and not last.tool_calls else None


@final
@register_condition
@frozen(repr=False)
class NoToolCalls(TerminationCondition):
    """Stop when the model answers without asking for a tool: the natural "I am done".

    An answer that a reviewer has sent back (`AgentState.pending_revision`) does not count.
    """

    reads_iteration: ClassVar[bool] = False

    def check(self, state: AgentState) -> bool:
        """Whether the newest message is such an answer."""
        if state.pending_revision or not state.messages:
            return False
        last = state.messages[-1]
        return last.role is ASSISTANT and not last.tool_calls

    def reading(self, state: AgentState) -> Reading:
        """The number of tool calls that the newest message asks for."""
        if state.pending_revision:
            return Reading(text="the answer was sent back for revision")
        if not state.messages or state.messages[-1].role is not ASSISTANT:
            return Reading(text="the newest message is not the model's")
        calls = len(state.messages[-1].tool_calls)
        text = f"the model asks for {calls} tool(s)" if calls else "the model has answered"
        return Reading(calls, 0, calls, text)


def _tool(value: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"ToolCalled(name) is {value!r}; it is the name of a tool")
    return value


def _predicate(
    value: Callable[[Mapping[str, Any]], bool] | str | None,
) -> Callable[[Mapping[str, Any]], bool] | None:
    found: Callable[[Mapping[str, Any]], bool] | None = None if value is None else function(value)
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"require_success is {value!r}; it is True or False")
    return value


@final
@register_condition
@frozen(repr=False)
class ToolCalled(TerminationCondition):
    """Stop when a tool was called.

    Args:
        name: the tool's name (kept as ``tool``).
        predicate: a pure function of the call's arguments, or its dotted name; it returns True or False.
        require_success: only a call that succeeded, from the cache or not, counts; with False one that failed
            in its body counts too. A call that was refused or rejected never counts.
    """

    reads_iteration: ClassVar[bool] = False

    tool: str = field(alias="name", converter=_tool)
    predicate: Callable[[Mapping[str, Any]], bool] | None = field(default=None, converter=_predicate)
    require_success: bool = field(default=True, converter=_flag)
    _test: ArgsTest | None = field(init=False, eq=False)

    @_test.default
    def _make_test(self) -> ArgsTest | None:
        return None if self.predicate is None else ArgsTest(self.name, self.predicate)

    def _found(self, state: AgentState) -> ToolExecution | None:
        return state.first_execution(self.tool, self._test, require_success=self.require_success)

    def check(self, state: AgentState) -> bool:
        """Whether such a call was made in this run."""
        return self._found(state) is not None

    def reading(self, state: AgentState) -> Reading:
        """The first such call."""
        found = self._found(state)
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
        raise ValueError(f"ConfidenceMet(threshold) is {value!r}; it is a number from 0.0 to 1.0")
    return float(value)


@final
@register_condition
@frozen(repr=False)
class ConfidenceMet(TerminationCondition):
    """Stop when the confidence is at least the threshold.

    Args:
        threshold: 0.0 to 1.0; None reads `AgentState.confidence_threshold`.
    """

    reads_iteration: ClassVar[bool] = False

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
        raise ValueError(f"TextMention(regex) is {value!r}; it is a string, flags inside: '(?i)done'")
    try:
        re.compile(value)
    except re.error as e:
        raise ValueError(f"TextMention(regex) is {value!r}, no regular expression: {e}; see re.escape") from e
    return value


@final
@register_condition
@frozen(repr=False)
class TextMention(TerminationCondition):
    """Stop when the final message matches a regular expression anywhere.

    The final message is the newest one, when it is the model's and asks for no tool: words beside a tool call
    are not an answer yet, and stopping there would leave the call without its result.

    Args:
        regex: in the syntax of `re`, case-sensitive unless it starts with ``(?i)``.
    """

    reads_iteration: ClassVar[bool] = False

    regex: str = field(converter=_regex)
    _pattern: re.Pattern[str] = field(init=False, eq=False)

    @_pattern.default
    def _compile(self) -> re.Pattern[str]:
        return re.compile(self.regex)

    def _match(self, state: AgentState) -> re.Match[str] | None:
        answer = _answer(state)
        return None if answer is None else self._pattern.search(answer.text)

    def check(self, state: AgentState) -> bool:
        """Whether the final message matches."""
        return self._match(state) is not None

    def reading(self, state: AgentState) -> Reading:
        """The text that matches."""
        found = self._match(state)
        if found is not None:
            return Reading(found.group(), self.regex, text=f"the answer mentions {found.group()!r}")
        missing = "there is no answer yet" if _answer(state) is None else f"no match of {self.regex!r}"
        return Reading(None, self.regex, text=missing)


def _state_predicate(value: Callable[[AgentState], bool] | str) -> Callable[[AgentState], bool]:
    found: Callable[[AgentState], bool] = function(value)
    return found


def _label(value: str | None) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"CustomCondition(name) is {value!r}; it is what the stop is reported as")
    return value


@final
@register_condition
@frozen(repr=False)
class CustomCondition(TerminationCondition):
    """Stop when a function of the state says so.

    Args:
        fn: ``(state) -> bool``, pure, or its dotted name. One that raises, or returns something else, ends
            the run with `ConditionError`.
        name: what a stop is reported as; the default is ``"CustomCondition"`` (kept as ``label``).
    """

    fn: Callable[[AgentState], bool] = field(converter=_state_predicate)
    label: str | None = field(default=None, alias="name", converter=_label)

    @property
    def name(self) -> str:
        """The given name, or the name of the class."""
        return self.label or type(self).__name__

    def check(self, state: AgentState) -> bool:
        """What the function says."""
        return ask(self.name, self.fn, state)

    def reading(self, state: AgentState) -> Reading:
        """What the function says."""
        said = self.check(state)
        name = getattr(self.fn, "__qualname__", type(self.fn).__qualname__)
        return Reading(value=said, threshold=True, text=f"{name} returned {said}")
