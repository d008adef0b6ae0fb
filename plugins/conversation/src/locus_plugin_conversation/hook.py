"""`ConversationHook`: a sliding window for agents that only turn the plugin on, ``Agent(conversation=True)``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from attrs import evolve

from locus.plugin import Hook, StashKey, hookimpl
from locus_plugin_conversation.settings import ConversationSettings
from locus_plugin_conversation.window import SlidingWindowManager

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.state import AgentState
    from locus.models import ModelRequest, ModelResponse
    from locus.plugin import RunContext

__all__ = ["ConversationHook"]

#: The messages of the state before Think, and those of them that the model gets.
_VIEW: StashKey[tuple[tuple[Message, ...], tuple[Message, ...]]] = StashKey("conversation.view")


class ConversationHook(Hook):
    """Sends the model the newest messages only.

    The window is chosen before Think, and kept in the state so that it survives a resume. A ``conversation_manager`` of
    the agent comes first: what it shows is sent as it is.

    Args:
        settings: the size of the window; None = the defaults.
    """

    def __init__(self, settings: ConversationSettings | None = None) -> None:
        settings = ConversationSettings() if settings is None else settings
        self._window = SlidingWindowManager(settings.max_messages, slack=settings.slack)

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Choose the window before Think."""
        if node != "think":
            return await call_next(state)
        view = await self._window.view(state, run)
        run.stash[_VIEW] = (state.messages, view.messages)
        for key, value in view.metadata.items():
            state = state.with_metadata(key, value)
        return await call_next(state)

    @hookimpl
    async def locus_wrap_model_call(
        self,
        call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        run: RunContext,
    ) -> ModelResponse:
        """Leave the messages before the window out of a request that begins with the whole conversation."""
        whole, shown = run.stash.get(_VIEW, ((), ()))
        if shown is not whole and request.messages[: len(whole)] == whole:
            request = evolve(request, messages=shown + request.messages[len(whole) :])
        return await call_next(request)
