"""The settings of the plugin: the table ``[plugins.conversation]``."""

from __future__ import annotations

from attrs import Attribute, field, frozen

from locus_kit.validators import integer
from locus_plugin_conversation.window import SlidingWindowManager

__all__ = ["ConversationSettings"]


@frozen(kw_only=True)
class ConversationSettings:
    """How much of a conversation the model sees when the plugin is turned on; see `SlidingWindowManager`.

    Args:
        max_messages: how many messages are shown at most; system messages before the window do not count.
        slack: how many messages below the limit a cut goes. None = a quarter of ``max_messages``.

    Raises:
        ValueError: ``max_messages`` is less than 1, or ``slack`` is not below it.
    """

    max_messages: int = field(default=40, validator=integer(1))
    slack: int | None = field(default=None)

    @slack.validator
    def _check_slack(self, _: Attribute[int | None], value: int | None) -> None:
        SlidingWindowManager(self.max_messages, slack=value)
