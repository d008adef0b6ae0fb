"""What a plugin shows a model that judges a run: the user's request, cut texts, and data that cannot pose as more.

An attacker may have written any of these texts. The result depends on the texts alone: a judge is asked the same
question again after a resume.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from locus.core import encode_data
from locus.core.messages import Message, Role, TextBlock
from locus.core.state import AgentState, ToolExecution

__all__ = ["clip", "describe_execution", "describe_message", "find_request", "indent_json", "quote"]


def clip(text: str, most: int) -> str:
    """Return the text, or its beginning and its end with a note of what was left out between them.

    Args:
        text: the text to show.
        most: how many characters of it to show.
    """
    if len(text) <= most:
        return text
    head = most // 2
    tail = len(text) - (most - head)
    return f"{text[:head]} [... {tail - head:,} characters left out ...] {text[tail:]}"


def quote(parts: Iterable[tuple[str, str]], *, salt: str = "") -> str:
    """Put texts between boundaries, each under a title.

    A boundary is a hash of all the texts: no text can hold the hash of a whole that it is part of, so no text can
    pretend to end.

    Args:
        parts: pairs of a title and a text.
        salt: something that the authors of the texts do not know, such as the run's id.
    """
    parts = list(parts)
    digest = blake2b(salt.encode("utf-8", "surrogatepass"), digest_size=8)
    for title, text in parts:
        digest.update(f"\0{title}\0{text}".encode("utf-8", "surrogatepass"))
    code = digest.hexdigest()
    return "\n\n".join(f"{title}:\n<<<data {code}\n{text}\n{code}>>>" for title, text in parts)


def indent_json(data: Any) -> str:
    """Write data as JSON with a line for each value; what JSON does not know is written as Python shows it.

    It is what ``json.dumps(data, ensure_ascii=False, indent=1, default=repr)`` gives, in a fraction of its time.
    """
    text = json.dumps(data, ensure_ascii=False, default=repr)
    try:
        return msgspec.json.format(text, indent=1)
    except (UnicodeEncodeError, msgspec.DecodeError):  # lone surrogates, and numbers such as Infinity
        return json.dumps(data, ensure_ascii=False, indent=1, default=repr)


def describe_execution(done: ToolExecution, most: int) -> str:
    """Describe a call and its outcome in two lines.

    Args:
        done: the call.
        most: how many characters to show of its arguments, and of its outcome.
    """
    asked = json.dumps(encode_data(done.arguments), ensure_ascii=False, sort_keys=True)
    outcome = f"error: {done.error}" if done.error is not None else f"result: {done.result}"
    return f"{done.tool_name} {clip(asked, most)}\n{clip(outcome, most)}"


def describe_message(message: Message) -> str:
    """Return the text of a message, with a note of how many other blocks it has."""
    others = sum(not isinstance(block, TextBlock) for block in message.content)
    return f"{message.text}\n[and {others} blocks that are not text]" if others else message.text


def find_request(state: AgentState) -> int | None:
    """Find the user's message that this run answers: its index in `AgentState.messages`, or None.

    Reviewers' feedback is a user's message in the conversation too; what tells them apart is how many answers of this
    run come after it.
    """
    answers, newest = len(state.reasoning_steps), None
    for at in range(len(state.messages) - 1, -1, -1):
        message = state.messages[at]
        if message.role is Role.ASSISTANT:
            answers -= 1
        elif message.role is Role.USER and message.plugin is None:
            newest = at
            if answers <= 0:
                break
    return newest
