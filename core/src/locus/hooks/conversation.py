"""What of a conversation a model gets to see: the protocol, and the value that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attrs import field, frozen

from locus.core.frozen import EMPTY, FrozenDict, freeze

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext

__all__ = ["ConversationManager", "View"]


@frozen
class View:
    """The messages of one request.

    Args:
        messages: what the model sees; the very tuple ``state.messages`` when nothing had to be left out.
        metadata: what the manager wants to find in ``state.metadata`` on later turns; Think puts it there.
    """

    messages: tuple[Message, ...]
    metadata: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)


@runtime_checkable
class ConversationManager(Protocol):
    """Keeps a long conversation inside the model's window.

    An implementation is shared by all runs of an agent, so it holds no state of a run: what must last goes
    into `View.metadata`, what may be lost into ``run.stash``.
    """

    async def view(self, state: AgentState, run: RunContext) -> View:
        """The messages of the next request; ``state.messages`` itself is never edited.

        Args:
            state: the state before the model call.
            run: for a model call (``run.call_model``), a report, and the stash.
        """
        ...
