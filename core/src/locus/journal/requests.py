"""Request ids: the turns of a thread, by the names that their callers gave them.

A turn is asked for by a client, a proxy or a queue, and each of them may ask again when it hears no answer. The ids are
an entry of the state's metadata, so that a snapshot, a fork and an export have them; a turn adds its own id and nothing
else, and the last one is found without reading the thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.errors import RequestSuperseded

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal.host import JournalHost

__all__ = ["REQUEST_IDS", "is_last_turn", "last_request_id", "with_request_id"]

#: The entry: an id for each turn in their order, ``""`` for a turn without one.
REQUEST_IDS = "locus.request_ids"


def last_request_id(state: AgentState) -> str:
    """The id of a thread's last turn, or ``""``."""
    ids: tuple[str, ...] = state.metadata.get(REQUEST_IDS) or ("",)
    return ids[-1]


def is_last_turn(host: JournalHost, request_id: str) -> bool:
    """Whether a request is the thread's last turn; ``""`` never is.

    Raises:
        RequestSuperseded: it is an earlier turn of the thread.
    """
    if not request_id:
        return False
    if request_id == last_request_id(host.state):
        return True
    if request_id in host.state.metadata.get(REQUEST_IDS, ()):
        raise RequestSuperseded(host.claim.thread_id, request_id)
    return False


def with_request_id(host: JournalHost, state: AgentState, request_id: str) -> AgentState:
    """The state of a new turn, with its id behind those of the turns that the thread has had."""
    earlier = host.state.metadata.get(REQUEST_IDS, ())
    if not (request_id or earlier or REQUEST_IDS in state.metadata):
        return state
    return state.with_metadata(REQUEST_IDS, (*earlier, request_id))
