"""What a plugin shows a model that judges a run: the user's request, cut texts, and data that cannot pose as more.

Everything here may have been written by an attacker, and it is the same after a resume: a judge is asked the same
question again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

from locus.core.lazy import Lazy
from locus.core.messages import Role

if TYPE_CHECKING:
    from locus.core import codec
    from locus.core.executions import ToolExecution
    from locus.core.state import AgentState
else:
    codec = Lazy("locus.core.codec")

__all__ = ["clipped", "execution_text", "quoted", "request_at"]


def clipped(text: str, most: int) -> str:
    """The text, or its beginning and its end.

    Args:
        text: to be shown.
        most: characters of it.
    """
    if len(text) <= most:
        return text
    head = most // 2
    tail = len(text) - (most - head)
    return f"{text[:head]} [... {tail - head:,} characters left out ...] {text[tail:]}"


def quoted(parts: Iterable[tuple[str, str]], *, salt: str = "") -> str:
    """Texts between boundaries, each under a title.

    A boundary is a hash of all the texts: none of them can hold the hash of a text that it is part of, so none can
    pretend to end.

    Args:
        parts: title and text.
        salt: something that whoever writes the texts does not know, such as the run's id.
    """
    parts = list(parts)
    digest = blake2b(salt.encode("utf-8", "surrogatepass"), digest_size=8)
    for title, text in parts:
        digest.update(f"\0{title}\0{text}".encode("utf-8", "surrogatepass"))
    code = digest.hexdigest()
    return "\n\n".join(f"{title}:\n<<<data {code}\n{text}\n{code}>>>" for title, text in parts)


def execution_text(done: ToolExecution, most: int) -> str:
    """A call with what came of it.

    Args:
        done: the call.
        most: characters of its arguments, and of its outcome.
    """
    asked = json.dumps(codec.encode_data(done.arguments), ensure_ascii=False, sort_keys=True)
    outcome = f"error: {done.error}" if done.error is not None else f"result: {done.result}"
    return f"{done.tool_name} {clipped(asked, most)}\n{clipped(outcome, most)}"


def request_at(state: AgentState) -> int | None:
    """Where in the messages the user's turn stands that this run answers; None where there is none.

    Reviewers' feedback stands in the conversation as a user's message too; what tells them apart is how many answers
    of this run come after it.
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
