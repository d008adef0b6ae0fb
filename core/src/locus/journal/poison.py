"""Poison: a run that kills its worker each time is found by counting how often it broke off in one place.

Each attempt has left an entry, so the count needs no clock and no counter of its own. A run that is given up is paused
like others, as a dead letter with its cause: a person who resumes it goes on as after any other pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.journal import FORK, Intent, Outcome, Paused, Resumed, Transition
from locus.core.step_id import EXECUTE, SEGMENT, StepId

if TYPE_CHECKING:
    from locus.journal.host import JournalHost
    from locus.journal.store import Claim

__all__ = ["LIMITS", "cause", "count_attempts", "dead_letter"]

#: The name of the step that keeps the limits that a segment is run with; its ordinal is the segment's number.
LIMITS = "limits"


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


def dead_letter(claim: Claim) -> str | None:
    """The cause for which a run was given up; None when it was not, or when it has gone on since."""
    newest = claim.entries[-1].body if claim.entries else None
    return newest.reason if isinstance(newest, Paused) and newest.kind == "dead_letter" else None


def cause(host: JournalHost) -> str:
    """How often an open run broke off where it is, and what was under way there."""
    state, node, made = host.state, host.open_node, count_attempts(host.claim)
    done = {outcome.step_id for outcome in host.outcomes}
    calls = [c.name for i, c in enumerate(state.unanswered) if StepId(state.iteration, EXECUTE, i) not in done]
    at_work = f", calling {', '.join(calls)}" if node == EXECUTE and calls else ""
    times = f"{made} attempts in a row" if made > 1 else "the attempt"
    return f"{times} broke off in {node} of iteration {state.iteration + 1}{at_work}"
