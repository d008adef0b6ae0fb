"""`CallOutcome`: what one tool call came to, as the journal keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus.core.data import register_value
from locus.core.executions import ToolExecution
from locus.core.frozen import frozen
from locus.core.lazy import Lazy
from locus.core.messages import TOOL, Block, Message, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from locus.core import codec
else:
    codec = Lazy("locus.core.codec")

__all__ = ["CallOutcome"]


@frozen
class CallOutcome:
    """The record of a call and what the model is told.

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
        execution = self.execution
        return Message(
            role=TOOL,
            content=(ToolResult(call.id, self.content, execution.error is not None, call.name),),
        )


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
