"""`CallOutcome`: what one tool call came to, as the journal keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.data import register_value
from locus.core.executions import ToolExecution
from locus.core.frozen import fast_init, frozen, maker
from locus.core.journal import EXECUTE, Outcome, StepId
from locus.core.labels import Label
from locus.core.lazy import Lazy
from locus.core.messages import SYSTEM, TOOL, Block, Message, ToolCall, ToolResult, Usage
from locus.core.state import not_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from locus.core import codec
    from locus.core.state import AgentState
    from locus.journal.host import JournalHost
    from locus.tools.registry import ToolRegistry
else:
    codec = Lazy("locus.core.codec")

#: What the model reads about a call that was begun and whose outcome is unknown.
UNKNOWN = (
    "outcome unknown: this call was started before an interruption and may have had its effect; "
    "find out before calling it again"
)


_result, _message = maker(ToolResult), maker(Message)


def _unknown_result(call: ToolCall) -> Message:
    """The tool message for a call that was begun and whose outcome is unknown."""
    return Message(TOOL, ToolResult(call.id, f"Error: {UNKNOWN}", is_error=True, name=call.name))


@fast_init
@frozen
class CallOutcome:
    """The record of a call and what the model reads.

    Args:
        execution: the record for the state.
        content: text, or blocks when the tool returned media.
        usage: what children that the body ran have spent, or None.
    """

    execution: ToolExecution
    content: str | tuple[Block, ...]
    usage: Usage | None = None

    def message(self, call: ToolCall) -> Message:
        """The tool message that answers the call."""
        result = _result(call.id, self.content, self.execution.error is not None, call.name)
        return _message(TOOL, (result,))


def _to_data(outcome: CallOutcome) -> Any:
    usage = None if outcome.usage is None else codec.encode(outcome.usage)
    if type(outcome.content) is str and outcome.execution.error is None:
        # What the codec makes of it, for the calls that are many.
        block = {"type": "tool_result", "call_id": "", "content": outcome.content}
        message = {"role": "tool", "content": [block]}
    else:
        message = codec.encode(outcome.message(_NO_CALL))
    return {"execution": codec.encode(outcome.execution), "message": message, "usage": usage}


def _from_data(data: Any) -> CallOutcome:
    block = codec.decode(data["message"], Message).tool_results[0]
    usage = data.get("usage")
    return CallOutcome(
        codec.decode(data["execution"], ToolExecution),
        block.content,
        None if usage is None else codec.decode(usage, Usage),
    )


_NO_CALL = ToolCall("", "")
register_value(CallOutcome, "locus.call", _to_data, _from_data, plain=True)


def with_recorded_results(host: JournalHost, state: AgentState, reason: str) -> AgentState:
    """The state with its open calls answered by what the journal says of them, before anything else may close them.

    Those that were never begun were not run for this reason.
    """
    from_record: list[Message] = []
    executions: list[ToolExecution] = []
    for ordinal, call in enumerate(state.unanswered):
        step_id = StepId(state.iteration, EXECUTE, ordinal)
        found = host.find_last_attempt(step_id)
        if isinstance(found, Outcome) and isinstance(found.value, CallOutcome):
            from_record.append(found.value.message(call))
            executions.append(found.value.execution)
        else:
            from_record.append(_unknown_result(call) if host.may_have_begun(step_id) else not_run(call, reason))
    return state.with_results(from_record, executions)


# --- a thread's executions -------------------------------------------------------------------------


#: Where the executions of tools with ``idempotent="thread"`` are kept: metadata outlives a run on its thread.
_THREAD_MEMORY = "locus.idempotent"


def remember_for_thread(state: AgentState, done: Iterable[CallOutcome], registry: ToolRegistry) -> AgentState:
    """The state with what came of calls that are made once in a thread."""
    kept = {}
    for outcome in done:
        execution = outcome.execution
        tool = registry.get(execution.tool_name)
        if tool is None or tool.idempotent != "thread":
            continue
        if execution.started and not execution.cache_hit and not execution.retryable:
            label = execution.known_label
            kept[execution.key] = (
                execution.result,
                execution.error,
                execution.media_at,
                execution.outcome_unknown,
                (label.reads, *sorted(label.sources)),
            )
    return state.with_metadata(_THREAD_MEMORY, {**state.metadata.get(_THREAD_MEMORY, {}), **kept}) if kept else state


def find_in_thread(state: AgentState, call: ToolCall, key: str) -> ToolExecution | None:
    """The execution in an earlier run of the thread of a call with that dedup key, or None."""
    kept = state.metadata.get(_THREAD_MEMORY, {}).get(key)
    if kept is None:
        return None
    result, error, at, unknown, label = (*kept, None, None, None)[:5]
    return ToolExecution(
        tool_name=call.name,
        arguments=call.arguments,
        result=result,
        error=error,
        key=key,
        media_at=at,
        outcome_unknown=bool(unknown),
        label=None if label is None else Label(label[0], frozenset(label[1:])),
    )


# --- media -------------------------------------------------------------------------------------------
# The blocks of a result that is more than text are in the conversation and are kept nowhere else. A conversation only
# grows in a run, so the place of a result never changes; the system prompt, which a later turn may add or drop, is not
# counted.


def place_media(outcome: CallOutcome, state: AgentState, ordinal: int) -> CallOutcome:
    """An outcome that knows where in the conversation its blocks will be: results are added in call order."""
    at = len(state.messages) - _prompts(state) + ordinal
    return evolve(outcome, execution=evolve(outcome.execution, media_at=at))


def repeat_content(earlier: ToolExecution, state: AgentState) -> str | tuple[Block, ...]:
    """What the model got for an earlier execution."""
    at = None if earlier.media_at is None else earlier.media_at + _prompts(state)
    if at is not None and at < len(state.messages):
        for result in state.messages[at].tool_results:
            # Unless the conversation was rewritten since, without the blocks.
            if result.name == earlier.tool_name:
                return result.content
    return f"Error: {earlier.error}" if earlier.error is not None else earlier.result or ""


def _prompts(state: AgentState) -> int:
    """How many system prompts the conversation begins with: one or none."""
    return 1 if state.messages and state.messages[0].role is SYSTEM else 0
