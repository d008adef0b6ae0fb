"""The JSON forms of runs and threads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from locus import AgentResult
from locus.core import encode_data
from locus.core.journal import Asked
from locus.core.messages import Block, Message, TextBlock, ToolResult, Usage
from locus.journal import JournalHost, ThreadInfo
from locus.plugins import scrub
from locus_plugin_serve.users import ThreadName

__all__ = ["info_to_json", "questions_to_json", "result_to_json", "thread_to_json", "usage_to_json"]


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """Tokens and dollars; the latter are null where no price is known."""
    return {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "dollars": usage.cost}


def questions_to_json(questions: Iterable[Asked]) -> list[dict[str, Any]]:
    """Open questions to a person."""
    return [
        {"id": each.interrupt_id, "question": each.question, "options": [str(o) for o in each.options]}
        for each in questions
    ]


def result_to_json(thread: ThreadName, result: AgentResult[Any]) -> dict[str, Any]:
    """How a run ended."""
    error = result.ending.error_text if result.error is not None else None
    return {
        "thread": thread.name,
        "run_id": result.run_id,
        "text": result.text,
        "stop_reason": result.stop_reason,
        "detail": result.detail,
        "failed": result.failed,
        "open": result.is_open,
        "error": None if error is None else scrub(error),
        "interrupts": questions_to_json(result.interrupts),
        "usage": usage_to_json(result.usage),
    }


def info_to_json(thread: ThreadName, info: ThreadInfo) -> dict[str, Any]:
    """A thread in a list."""
    return {
        "thread": thread.name,
        "status": info.status,
        "title": info.title,
        "created_at": None if info.created_at is None else info.created_at.isoformat(),
        "updated_at": None if info.updated_at is None else info.updated_at.isoformat(),
    }


def thread_to_json(thread: ThreadName, host: JournalHost, *, is_running: bool) -> dict[str, Any]:
    """A thread with its conversation.

    Args:
        thread: the thread.
        host: what its journal has.
        is_running: whether a run of it is in this process.
    """
    questions = host.open_questions
    if is_running:
        status = "running"
    else:
        status = "waiting" if questions else "ended" if host.open_node is None else "open"
    return {
        "thread": thread.name,
        "run_id": host.run_id,
        "status": status,
        "stop_reason": host.last.why if host.last is not None and host.open_node is None else None,
        "interrupts": questions_to_json(questions.values()),
        "messages": [_message(each) for each in host.state.messages if each.role.value != "system"],
        "last_event_id": str(host.claim.head),
    }


def _message(message: Message) -> dict[str, Any]:
    text = "".join(_text(block) for block in message.content)
    form: dict[str, Any] = {"role": message.role.value, "text": text}
    calls = [
        {"id": call.id, "name": call.name, "arguments": encode_data(call.arguments)} for call in message.tool_calls
    ]
    if calls:
        form["tool_calls"] = calls
    return form


def _text(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if not isinstance(block, ToolResult):
        return ""
    return block.content if isinstance(block.content, str) else "".join(map(_text, block.content))
