"""What is wrong with an answer: it was cut, filtered, refused, or is empty.

A provider says why its model stopped in words of its own, which its plugin translates to a `StopReason`; what that
means for the run is decided here. Such an answer ends the run under the name of its fault, because a caller that reads
the text must not take half of it, or nothing, for the whole. Asking again costs as much and mostly ends the same way,
so it is done only where the agent says so (``retry_on``), and once.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from locus.core.messages import (
    CONTENT_FILTERED,
    EMPTY_ANSWER,
    OUTPUT_INVALID,
    REFUSED,
    TRUNCATED,
    USER,
    Message,
    TextBlock,
    ThinkingBlock,
    plugin_message,
)
from locus.core.state import AgentState

_FAULTS: Mapping[str, str] = {"length": TRUNCATED, "filter": CONTENT_FILTERED, "refusal": REFUSED}

_REQUESTS = {
    TRUNCATED: "Your answer was cut at the length limit. Answer again, in fewer words.",
    CONTENT_FILTERED: "A content filter stopped your answer. Answer again without what it may object to.",
    REFUSED: "You did not answer. Answer as far as you can.",
    EMPTY_ANSWER: "Your answer was empty. Answer in text, or call a tool.",
    OUTPUT_INVALID: "The answer does not follow the output schema. Answer again, as JSON only.",
}

#: The feedback on an answer that does not follow its schema; what is wrong goes in.
MISFIT = "The answer does not follow the output schema: {}. Answer again, as JSON only."

#: What marks the messages that send an answer back.
_NAME = "retry_on"


def find_fault(message: Message, stop_reason: str) -> str:
    """What is wrong with an answer, as a reason for the end of a run; ``""`` for nothing.

    It is empty when it has neither text nor anything else that is not thinking.
    """
    fault = _FAULTS.get(stop_reason)
    if fault is not None:
        return fault
    for block in message.content:
        if type(block) is TextBlock:
            if block.text.strip():
                return ""
        elif type(block) is not ThinkingBlock:
            return ""
    return EMPTY_ANSWER


def send_back(state: AgentState, faults: Container[str]) -> AgentState | None:
    """The state with its faulty answer sent back; None where the answer ends the run.

    The faults given send an answer back, once in a turn of the user's.
    """
    fault = state.answer_fault
    if fault not in faults:
        return None
    for message in reversed(state.messages):
        if message.role is USER and message.plugin in (None, _NAME):
            if message.plugin == _NAME:
                return None
            break
    return state.with_calls_closed(fault).with_revision(plugin_message(_NAME, _REQUESTS[fault]))
