"""What a judge is shown of a run: the request, the last step in full, a few calls before it. Never the whole history.

It is one JSON document, so that text of a tool or a model cannot pose as anything but data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from locus.core import thaw
from locus.core.messages import Message
from locus.core.state import AgentState, ToolExecution
from locus_kit.judging import clip, find_request, indent_json

__all__ = ["record", "request_of"]

#: How many calls of one step are shown in full.
_MOST_CALLS = 12


def request_of(state: AgentState) -> Message | None:
    """The user's turn that this run answers."""
    at = find_request(state)
    return None if at is None else state.messages[at]


@frozen
class _Clip:
    """Cuts texts to a length.

    Args:
        longest: in characters.
    """

    longest: int

    def text(self, text: str) -> str:
        return clip(text, self.longest)

    def data(self, value: Any) -> Any:
        plain = thaw(value)
        told = json.dumps(plain, ensure_ascii=False, default=repr)
        return plain if len(told) <= self.longest else self.text(told)


#: For calls before the step, of which a summary is enough.
_SHORT = _Clip(200)


def record(state: AgentState, *, request: Message | None, why: str, window: int, max_chars: int) -> str:
    """The record of a step, as JSON text; the same for the same state.

    Args:
        state: the state after Execute.
        request: the user's turn.
        why: the reason to reflect.
        window: how many calls before the step to list.
        max_chars: how much of each text to show.
    """
    clip = _Clip(max_chars)
    step = _last_step(state)
    before = state.tool_executions[: len(state.tool_executions) - len(step)][-window:]
    thought = state.reasoning_steps[-1].thought if state.reasoning_steps else ""
    shown = step[-_MOST_CALLS:]
    told: dict[str, Any] = {
        "request": "" if request is None else clip.text(request.text),
        "why_you_are_asked": why,
        "step": {
            "number": state.iteration + 1,
            "thought": clip.text(thought),
            "calls": [_in_full(execution, clip) for execution in shown],
        },
        "earlier_calls": [_in_short(execution) for execution in before],
        "confidence_so_far": round(state.confidence, 4),
    }
    if len(shown) < len(step):
        told["step"]["calls_left_out"] = len(step) - len(shown)
    return indent_json(told)


def _last_step(state: AgentState) -> Sequence[ToolExecution]:
    executions = state.tool_executions
    count = 0
    while count < len(executions) and executions[-1 - count].iteration == state.iteration:
        count += 1
    return executions[len(executions) - count :]


def _in_full(execution: ToolExecution, clip: _Clip) -> dict[str, Any]:
    told: dict[str, Any] = {"tool": _SHORT.text(execution.tool_name), "arguments": clip.data(execution.arguments)}
    if execution.error is not None:
        told["error" if execution.started else "refused"] = clip.text(execution.error)
    else:
        told["result"] = clip.text(execution.result or "")
    if execution.cache_hit:
        told["answered_from_an_earlier_call"] = True
    return told


def _in_short(execution: ToolExecution) -> str:
    arguments = json.dumps(thaw(execution.arguments), ensure_ascii=False, default=repr)
    outcome = execution.result or "" if execution.error is None else f"failed: {execution.error}"
    return f"{_SHORT.text(execution.tool_name)}({_SHORT.text(arguments)}): {_SHORT.text(outcome)}"
