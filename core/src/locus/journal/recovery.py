"""What a claimed thread says before a segment begins: was this turn asked for before, did it kill its workers?

**Request ids.** A turn is asked for by a client, a proxy or a queue, and each of them may ask again when it hears no
answer. The ids that callers give their turns are an entry of the state's metadata, so that a snapshot, a fork and an
export have them; a turn adds its own id and nothing else, and the last one is found without reading the thread.

**Poison.** A run that kills its worker each time is found by counting how often it broke off in one place. Each attempt
has left an entry, so the count needs no clock and no counter of its own. A run that is given up is paused like others,
as a dead letter with its cause: a person who resumes it goes on as after any other pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.errors import RequestSuperseded
from locus.core.journal import FORK, Intent, Outcome, Paused, Resumed, Transition
from locus.core.step_id import EXECUTE, SEGMENT, StepId
from locus.journal.store import Snapshot

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal.host import JournalHost
    from locus.journal.store import Claim, FoldingStore

#: The name of the step that keeps the limits that a segment is run with; its ordinal is the segment's number.
LIMITS = "limits"

#: The metadata entry: an id for each turn in their order, ``""`` for a turn without one.
REQUEST_IDS = "locus.request_ids"


def count_attempts(claim: Claim) -> int:
    """How many segments in a row broke off at the end of a thread, without a pause and with nothing new on record."""
    count = 0
    for entry in reversed(claim.entries):
        body = entry.body
        if isinstance(body, Resumed):
            count += 1
        elif isinstance(body, Paused) or (isinstance(body, Transition) and body.node == FORK):
            return count  # the worker that wrote this did not die
        elif not isinstance(body, Intent) and not (isinstance(body, Outcome) and body.step_id.node == SEGMENT):
            return count + 1
    return count + (claim.snapshot is not None)


def find_paused_seconds(host: JournalHost) -> float:
    """How long the run had been at work, between its last transition and the pause from which it goes on."""
    for entry in reversed(host.claim.entries):
        body = entry.body
        if isinstance(body, Transition):
            break
        if isinstance(body, Paused) and body.active_seconds:
            return body.active_seconds
    return 0.0


def keep_fold(host: JournalHost) -> None:
    """Have the store remember the state of a run that yields, where it can: the next segment need not fold it anew."""
    store: FoldingStore | None = host.store if hasattr(host.store, "keep_fold") else None  # type: ignore[assignment]
    if store is not None and host.last is not None and host.stop_error is None:
        store.keep_fold(host.claim, Snapshot(host.last_at, host.state, host.last))


def dead_letter(claim: Claim) -> str | None:
    """The cause for which a run was given up; None when it was not, or when it has gone on since."""
    newest = claim.entries[-1].body if claim.entries else None
    return newest.reason if isinstance(newest, Paused) and newest.kind == "dead_letter" else None


def cause(host: JournalHost) -> str:
    """How often an open run broke off where it is, and what was under way there."""
    state, node, made = host.state, host.open_node, count_attempts(host.claim)
    done = {step.step_id for step in host.steps if isinstance(step, Outcome)}
    calls = [c.name for i, c in enumerate(state.unanswered) if StepId(state.iteration, EXECUTE, i) not in done]
    at_work = f", calling {', '.join(calls)}" if node == EXECUTE and calls else ""
    times = f"{made} attempts in a row" if made > 1 else "the attempt"
    return f"{times} broke off in {node} of iteration {state.iteration + 1}{at_work}"


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
