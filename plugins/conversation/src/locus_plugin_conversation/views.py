"""`recorded_views`: what managers showed of a conversation, by what they have put into the state's metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from locus_plugin_conversation import summaries, window
from locus_plugin_conversation.compaction import Compaction

if TYPE_CHECKING:
    from locus.core.messages import Message

__all__ = ["recorded_views"]


def recorded_views(messages: Sequence[Message], metadata: Mapping[str, Any]) -> tuple[tuple[Message, ...], ...]:
    """What each manager that has left something out would show; no manager and no model is asked.

    Args:
        messages: the conversation before a model call, `AgentState.messages`.
        metadata: of the state after it, `AgentState.metadata`.

    Returns:
        A view for each manager that has acted on this conversation; most threads have one manager or none.
    """
    whole, found = tuple(messages), []
    for key in (summaries.KEY, window.KEY):
        made = None if key not in metadata else Compaction.from_data(metadata[key], whole)
        if made is not None:
            found.append((*made.render(whole), *whole[made.reach :]))
    return tuple(found)
