"""What kills its worker each time is found by counting: how often a run broke off in one place, and what it is then.

Each attempt has left an entry, so the count needs no clock and no counter of its own. A run that is set aside is a
pause like others, with a reason that says so: whoever resumes it by hand goes on as after any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.journal import FORK, Intent, Outcome, Paused, Resumed, Transition

if TYPE_CHECKING:
    from locus.journal.host import JournalHost
    from locus.journal.store import Claim

__all__ = ["LIMITS", "attempts_made", "dead_letter", "set_aside", "where_they_died"]

#: The name under which a segment's own limits are on record, with the segment's number behind it.
LIMITS = "limits"

_REASON = "DeadLetter: "


def attempts_made(claim: Claim) -> int:
    """How many segments in a row broke off where a thread stands: without a word, and with nothing new on record."""
    count = 0
    for entry in reversed(claim.entries):
        body = entry.body
        if isinstance(body, Resumed):
            count += 1
        elif isinstance(body, Paused) or (isinstance(body, Transition) and body.node == FORK):
            return count  # whoever wrote this did not die
        elif not isinstance(body, Intent) and not (isinstance(body, Outcome) and body.step_id.startswith(f"{LIMITS}/")):
            return count + 1
    return count + (claim.snapshot is not None)


def set_aside(claim: Claim) -> str | None:
    """Why a thread is set aside; None when it is not, or when somebody has gone on with it since."""
    newest = claim.entries[-1].body if claim.entries else None
    if not isinstance(newest, Paused) or not newest.reason.startswith(_REASON):
        return None
    return newest.reason.removeprefix(_REASON)


def dead_letter(cause: str) -> str:
    """What the journal says of a run that is set aside."""
    return f"{_REASON}{cause}"


def where_they_died(host: JournalHost) -> str:
    """The cause: how often an open run broke off where it stands, and what was under way there."""
    state, node, made = host.state, host.open_node, attempts_made(host.claim)
    done = {outcome.step_id for outcome in host.outcomes}
    calls = [c.name for i, c in enumerate(state.unanswered) if f"{state.iteration}/execute/{i}" not in done]
    at_work = f", calling {', '.join(calls)}" if node == "execute" and calls else ""
    times = f"{made} attempts in a row" if made > 1 else "the attempt"
    return f"{times} broke off in {node} of iteration {state.iteration + 1}{at_work}"
