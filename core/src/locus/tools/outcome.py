"""`CallOutcome`: what one tool call came to, as the journal keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from locus.core.data import register_value
from locus.core.executions import ToolExecution
from locus.core.lazy import Lazy
from locus.core.messages import Block, Message, Role, ToolCall, ToolResult

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
    """

    execution: ToolExecution
    content: str | tuple[Block, ...]

    def message(self, call: ToolCall) -> Message:
        """The tool message that answers the call."""
        execution = self.execution
        return Message(
            role=Role.TOOL,
            content=(ToolResult(call.id, self.content, execution.error is not None, call.name),),
        )


def _to_data(outcome: CallOutcome) -> Any:
    return {"execution": codec.encode(outcome.execution), "message": codec.encode(outcome.message(_NO_CALL))}


def _from_data(data: Any) -> CallOutcome:
    block = codec.decode(data["message"], Message).tool_results[0]
    return CallOutcome(codec.decode(data["execution"], ToolExecution), block.content)


_NO_CALL = ToolCall("", "")
register_value(CallOutcome, "locus.call", _to_data, _from_data)
