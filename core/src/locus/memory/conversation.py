"""Conversation managers: what of a long conversation a model gets to see, in one place to import from."""

from __future__ import annotations

from locus.memory.compactor import LLMCompactor
from locus.memory.summaries import SummarizingManager
from locus.memory.tokens import estimate_tokens
from locus.memory.view import ConversationManager, View
from locus.memory.window import SlidingWindowManager

__all__ = [
    "ConversationManager",
    "LLMCompactor",
    "SlidingWindowManager",
    "SummarizingManager",
    "View",
    "estimate_tokens",
]
