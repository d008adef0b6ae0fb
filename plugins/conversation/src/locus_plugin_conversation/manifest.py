"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_CONVERSATION = "locus.memory.conversation"

plugin = Plugin(
    name="conversation",
    api=(1, 0),
    summary="Keeps long conversations inside the model's window: a sliding window, summaries, compaction by tokens.",
    hooks=("locus_plugin_conversation.hook:ConversationHook",),
    provides={"conversation_manager": "locus_plugin_conversation.factory:make"},
    settings="locus_plugin_conversation.settings:ConversationSettings",
    harmless=("max_messages", "slack"),
    compat_paths={
        f"{_CONVERSATION}:LLMCompactor": "locus_plugin_conversation.compactor:LLMCompactor",
        f"{_CONVERSATION}:SlidingWindowManager": "locus_plugin_conversation.window:SlidingWindowManager",
        f"{_CONVERSATION}:SummarizingManager": "locus_plugin_conversation.summaries:SummarizingManager",
        f"{_CONVERSATION}:estimate_tokens": "locus_plugin_conversation.tokens:estimate_tokens",
        f"{_CONVERSATION}:recorded_views": "locus_plugin_conversation.views:recorded_views",
        "locus.memory.compactor:LLMCompactor": "locus_plugin_conversation.compactor:LLMCompactor",
    },
)
