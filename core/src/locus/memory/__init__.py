"""Memory: what of a long conversation a model gets to see."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.memory.conversation import (
        ConversationManager,
        LLMCompactor,
        SlidingWindowManager,
        SummarizingManager,
        View,
    )

__all__ = [
    "ConversationManager",
    "LLMCompactor",
    "SlidingWindowManager",
    "SummarizingManager",
    "View",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "ConversationManager": "locus.memory.conversation",
        "LLMCompactor": "locus.memory.conversation",
        "SlidingWindowManager": "locus.memory.conversation",
        "SummarizingManager": "locus.memory.conversation",
        "View": "locus.memory.conversation",
    },
)
