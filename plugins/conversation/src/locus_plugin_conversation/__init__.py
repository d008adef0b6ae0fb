"""Conversation managers: they choose which messages of a long conversation the model sees.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_conversation.compactor import LLMCompactor
    from locus_plugin_conversation.hook import ConversationHook
    from locus_plugin_conversation.settings import ConversationSettings
    from locus_plugin_conversation.summaries import SummarizingManager
    from locus_plugin_conversation.tokens import estimate_tokens
    from locus_plugin_conversation.views import recorded_views
    from locus_plugin_conversation.window import SlidingWindowManager

__all__ = [
    "ConversationHook",
    "ConversationSettings",
    "LLMCompactor",
    "SlidingWindowManager",
    "SummarizingManager",
    "estimate_tokens",
    "recorded_views",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_conversation.compactor": ("LLMCompactor",),
        "locus_plugin_conversation.hook": ("ConversationHook",),
        "locus_plugin_conversation.views": ("recorded_views",),
        "locus_plugin_conversation.settings": ("ConversationSettings",),
        "locus_plugin_conversation.summaries": ("SummarizingManager",),
        "locus_plugin_conversation.tokens": ("estimate_tokens",),
        "locus_plugin_conversation.window": ("SlidingWindowManager",),
    },
)
