"""One tool call of a turn on its way: what is asked for, which step of the journal it is, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, evolve

from locus.core.data import encode_data
from locus.core.directives import Option, chosen_options
from locus.core.errors import RetryableToolError
from locus.core.executions import ToolExecution
from locus.core.frozen import maker
from locus.core.labels import CLEAN
from locus.core.messages import ANSWER_FAULTS, TRUNCATED, WITHHELD, TextBlock, ToolCall
from locus.core.step_id import EXECUTE, StepId
from locus.schema.canonical import exact_key
from locus.tools.definition import ArgumentError, Bound, Tool
from locus.tools.outcome import UNKNOWN, CallOutcome, place_media
from locus.tools.result import error_text, result_content
from locus.tools.step import StepEntry

if TYPE_CHECKING:
    from locus.core.frozen import FrozenDict
    from locus.core.labels import Label
    from locus.core.messages import Block
    from locus.core.state import AgentState
    from locus.tools.call_run import CallRun

_execution, _outcome, _step_id, _call = maker(ToolExecution), maker(CallOutcome), maker(StepId), maker(ToolCall)


#: How much of changed arguments the model is shown again, in characters.
_SHOWN = 2_000


@define(slots=True)
class PendingCall(StepEntry):
    """One call on its way through the pipeline."""

    # With the arguments as the body gets them.
    call: ToolCall
    state: AgentState
    key: str
    tool: Tool[..., Any] | None = None
    bound: Bound | None = None
    # The key that was recorded with its intent, before a crash.
    intended_key: str = ""
    outcome: CallOutcome | None = None
    # Why the body cannot run, whatever a hook asks for.
    invalid: CallOutcome | None = None
    # Nothing else is under way beside it.
    alone: bool = False
    # The arguments that a wrapper put in the place of those of the call.
    ran_with: FrozenDict[str, Any] | None = None
    # What a person answered who was asked whether it may run, and how the next question about that is named.
    answer: Any = None
    is_allowed: bool | None = None
    next_question: str = "decide"
    # Why the arguments that a person gave last do not fit.
    problem: str = ""
    # The key of the call as the model asked for it, where a person has changed its arguments.
    asked_key: str = ""

    @property
    def label(self) -> Label:
        """Of what the body gives, as its tool says, and with what children have seen."""
        own = CLEAN if self.tool is None else self.tool.label
        return own if self.read is CLEAN else own | self.read

    def refusal(self, error: str) -> CallOutcome:
        """The outcome of a call whose body is not entered."""
        return self._outcome_of(None, f"Error: {error}", error, 0.0, started=False)

    def refuse(self, error: str) -> None:
        """Let the body not be entered, whatever a hook asks for."""
        self.outcome = self.invalid = self.refusal(error)
        self.bound = None

    def _outcome_of(
        self,
        result: str | None,
        content: str | tuple[Block, ...],
        error: str | None,
        duration_ms: float,
        *,
        started: bool = True,
        retryable: bool = False,
        unknown: bool = False,
    ) -> CallOutcome:
        execution = _execution(
            tool_name=self.call.name,
            arguments=self.call.arguments if self.ran_with is None else self.ran_with,
            result=result,
            error=error,
            duration_ms=duration_ms,
            key=self.key,
            call_id=self.call.id,
            iteration=self.state.iteration,
            started=started,
            retryable=retryable,
            outcome_unknown=unknown,
            label=self.label if started else CLEAN,
            answer=self.answer,
        )
        return _outcome(execution, content, self.usage)

    def result_of(self, value: Any, duration_ms: float) -> CallOutcome:
        """The outcome of a body that returned a value, which may be too long yet."""
        content = result_content(value, whole=True)
        if isinstance(content, str):
            return self._outcome_of(content, content, None, duration_ms)
        text = "".join(getattr(b, "text", "") for b in content)
        return self.place_media(self._outcome_of(text, content, None, duration_ms))

    def place_media(self, outcome: CallOutcome) -> CallOutcome:
        """The outcome with the place of its blocks, which later hits are given again from the conversation."""
        return place_media(outcome, self.state, self.step_id.ordinal)

    def failure(self, error: BaseException, duration_ms: float) -> CallOutcome:
        """The outcome of a body that raised, or that could not be entered."""
        text = error_text(error)
        retryable = isinstance(error, RetryableToolError)
        return self._outcome_of(None, f"Error: {text}", text, duration_ms, started=self.is_entered, retryable=retryable)

    def unknown_outcome(self) -> CallOutcome:
        """The outcome of a call that was begun, and of which no more is known."""
        return self._outcome_of(None, f"Error: {UNKNOWN}", UNKNOWN, 0.0, unknown=True)

    def idempotency_key(self, run: CallRun) -> str:
        """What ``ctx.idempotency_key`` is: the same at every attempt at this call."""
        tool = self.tool
        if tool is not None and tool.idempotent:
            return f"{run.thread_id if tool.idempotent == 'thread' else run.run_id}/{self.intended_key or self.key}"
        return f"{run.run_id}/{self.step_id.iteration}/{self.step_id.ordinal}"

    @property
    def asks_about(self) -> str:
        """What an open question of this call is about: a hook's about the arguments, the body's about the call."""
        return (self.asked_key or self.key) if self.question.startswith("decide") else self.digest

    def take_answer(self, run: CallRun) -> None:
        """Know what a person who was asked about the call has said; arguments that fit take the place of its own."""
        self.answer, self.is_allowed, self.problem, before = None, None, "", self.question
        number = 0
        while True:
            self.question = self.next_question = f"decide{number or ''}"
            given = self.find_answer(run)
            if given is None:
                break
            asked, self.answer = given
            chosen = chosen_options(asked.options, self.answer)
            self.is_allowed = bool(chosen) and all(isinstance(each, Option) and each.allow for each in chosen)
            if not self.is_allowed or not self.is_changed or self.bound is None:
                break
            bound = self.bound.rebind(self.answer["arguments"])
            if not isinstance(bound, ArgumentError):
                self.asked_key = self.asked_key or self.key
                self.bound, self.key = bound, bound.key
                self.call = _call(self.call.id, self.call.name, bound.data, extras=self.call.extras)
                break
            self.answer, self.is_allowed, self.problem = None, None, str(bound)
            number += 1
        self.question = before

    @property
    def is_changed(self) -> bool:
        """Whether the answer has arguments."""
        return isinstance(self.answer, Mapping) and "arguments" in self.answer

    def tell_change(self, outcome: CallOutcome) -> CallOutcome:
        """The outcome with what a person has changed: in the conversation the call stays as the model wrote it."""
        if not self.asked_key or not outcome.execution.started:
            return outcome
        text = json.dumps(encode_data(self.call.arguments), ensure_ascii=False)
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        note = f"[A person changed the arguments of this call to {text}]\n"
        content = outcome.content
        return evolve(outcome, content=note + content if isinstance(content, str) else (TextBlock(note), *content))


def prepare_call(ordinal: int, call: ToolCall, state: AgentState, run: CallRun) -> PendingCall:
    """The call of that number in its turn, with its tool and its arguments, or with the error that it comes to."""
    digest = exact_key(call.name, call.arguments if call.malformed is None else {"": call.malformed})
    # Of the arguments as the model gave them: the digest is the same, whatever has become of the tool since.
    c = object.__new__(PendingCall)  # a call of the class would carry its arguments through a tuple and a dict
    PendingCall.__init__(c, call, state, digest, step_id=_step_id(state.iteration, EXECUTE, ordinal), digest=digest)
    tool = c.tool = run.registry.get(call.name)
    incomplete = _find_incomplete(call, state) if state.answer_fault else ""
    if tool is None:
        c.outcome = c.refusal(run.registry.unknown(call.name))
    elif incomplete:
        c.outcome = c.refusal(f"not run: {incomplete}")
    elif call.malformed is not None:
        c.outcome = c.refusal(
            f"ArgumentError: the arguments of {call.name} are not a JSON object: {call.malformed[:200]!r}; "
            "call it again with one"
        )
    else:
        bound = tool.bind(call.arguments)
        if isinstance(bound, ArgumentError):
            c.outcome = c.refusal(f"ArgumentError: {bound}")
        else:
            c.bound, c.key = bound, bound.key
            if bound.key != digest:
                # Who decides about the call, or hears of it, sees what the body gets.
                c.call = _call(call.id, call.name, bound.data, extras=call.extras)
    c.invalid = c.outcome
    return c


def _find_incomplete(call: ToolCall, state: AgentState) -> str:
    """Why a call of the newest answer, which has a fault, may not be what the model meant; ``""`` when it is.

    An answer that was cut ends in its last block. A call there is not run even where its arguments can be read: servers
    close the JSON of what was cut, and send ``{}`` for arguments that had not begun. The calls before it were complete
    when the model went on to the next.
    """
    fault = state.answer_fault
    if fault in WITHHELD:
        return ANSWER_FAULTS[fault]
    answer = state.last_assistant
    if fault != TRUNCATED or answer is None or answer.content[-1] != call:
        return ""
    return f"{ANSWER_FAULTS[fault]} in this call, so it may be incomplete; call it again, with less in one answer"
