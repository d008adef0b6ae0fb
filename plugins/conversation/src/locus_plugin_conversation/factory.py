"""Managers by name, for configuration files: ``[agent] conversation = "conversation:compact"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.errors import ConfigError
from locus_plugin_conversation.compactor import LLMCompactor
from locus_plugin_conversation.summaries import SummarizingManager
from locus_plugin_conversation.window import SlidingWindowManager

if TYPE_CHECKING:
    from locus.plugin import ConversationManager
    from locus_plugin_conversation.settings import ConversationSettings

__all__ = ["make"]

_FORMS = "'compact', 'compact:TOKENS', 'summary:MESSAGES', 'window' or 'window:MESSAGES'"


def make(text: str, settings: ConversationSettings) -> ConversationManager:
    """The manager behind ``conversation:TEXT``.

    Args:
        text: ``"compact"`` (`LLMCompactor`; its window in tokens may follow), ``"summary:MESSAGES"``
            (`SummarizingManager` with that threshold) or ``"window"`` (`SlidingWindowManager`; the size may follow).
        settings: the plugin's; the size of a window without one.

    Raises:
        ConfigError: the text has another form.
    """
    name, _, rest = text.partition(":")
    try:
        size = int(rest) if rest else None
        if name == "compact":
            return LLMCompactor() if size is None else LLMCompactor(window=size)
        if name == "summary" and size is not None:
            return SummarizingManager(size)
        if name == "window":
            return SlidingWindowManager(settings.max_messages if size is None else size, slack=settings.slack)
    except ValueError as e:
        raise ConfigError(f"conversation manager 'conversation:{text}': {e}") from e
    raise ConfigError(f"expected a conversation manager 'conversation:TEXT' with TEXT one of {_FORMS}, got {text!r}")
