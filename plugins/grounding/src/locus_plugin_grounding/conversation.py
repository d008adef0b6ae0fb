"""What a conversation holds for grounding: the user's question and what the tools said, read as it grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core.messages import Message, ToolCall, ToolResult
from locus.core.state import AgentState
from locus_kit.judging import find_request
from locus_plugin_grounding.evidence import Corpus

__all__ = ["ConversationEvidence"]


def _question(state: AgentState) -> str:
    """The user's turn that this run answers."""
    at = find_request(state)
    return "" if at is None else state.messages[at].text


class ConversationEvidence:
    """The evidence of one run: every tool result of its conversation, of earlier turns too.

    Args:
        state: of the run.
        max_chars: characters of one result that are read.
    """

    def __init__(self, state: AgentState, *, max_chars: int) -> None:
        self.corpus = Corpus(_question(state), max_chars=max_chars)
        self._seen = 0
        self._calls: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def read(self, state: AgentState) -> Corpus:
        """The evidence of a state, which has the messages that were read before, and more."""
        for message in state.messages[self._seen :]:
            self._take(message)
        self._seen = len(state.messages)
        return self.corpus

    def _take(self, message: Message) -> None:
        for block in message.content:
            if isinstance(block, ToolCall):
                self._calls[block.id] = (block.name, block.arguments)
            elif isinstance(block, ToolResult):
                tool, arguments = self._calls.get(block.call_id, ("", {}))
                self.corpus.add(_text(block), tool=tool, arguments=arguments)


def _text(result: ToolResult) -> str:
    content = result.content
    return content if isinstance(content, str) else "\n".join(getattr(block, "text", "") for block in content)
