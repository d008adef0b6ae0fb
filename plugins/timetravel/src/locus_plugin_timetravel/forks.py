"""`fork`: another thread that begins like a thread did, up to a transition, and goes its own way from there.

A fork of an open run is another run: it gets a run id of its own, in the same write that makes the fork. The keys of
its effects begin with the run's id (`ToolContext.idempotency_key`), and an effect of the fork is a new one, not another
attempt at the origin's: with the origin's key, a service that deduplicates would answer it with what it did for other
arguments. What the origin had done before the fork is in the state, and is not done again. What it had done in the node
under way is not part of the fork, which ends with a transition: there that node runs anew. But an effect whose intent
is on record without an outcome is not begun anew: the fork inherits that its outcome is unknown.

A fork knows the request ids of the turns that it has: the turn that is its last is answered from the copy, or gone on
with where the fork left it open; the id of a turn behind the fork is a new turn there.
"""

from __future__ import annotations

from uuid import uuid4

from attrs import evolve

from locus.core.journal import END, FORK, Asked, Body, Intent, Outcome, StateDelta, StepId, Transition
from locus.loop import thread_name
from locus.loop.router import Node
from locus_plugin_timetravel.histories import Source, store_of
from locus_plugin_timetravel.pages import newest_transition, nth_transition, steps_after

__all__ = ["fork"]


async def fork(source: Source, thread_id: str, *, at: int | None = None, into: str | None = None) -> str:
    """Make another thread out of the beginning of one; gives its id.

    An ended run stays as it is, and ``agent.run(prompt, thread_id=...)`` takes the next turn; an open one is open in
    the fork too, and ``agent.resume`` goes on with it, as a run of its own.

    Args:
        source: the agent, or the store where both are kept.
        thread_id: the thread to fork; a run may hold it meanwhile.
        at: the number of the last transition that the fork has, as in `History`; None = the newest.
        into: the new thread's id; None = the old one with a few letters behind it.

    Raises:
        ConfigError: the agent has no checkpointer.
        NothingToResume: the thread does not exist.
        JournalError: the transition does not exist, ``into`` is taken, or the store keeps no history.
        InputError: ``into`` is not a valid name.
    """
    store = store_of(source)
    name = f"{thread_id}~{uuid4().hex[:8]}" if into is None else thread_name(into)
    if at is None:
        (number, last), where = await newest_transition(store, thread_id), ""
    else:
        (number, last), where = await nth_transition(store, thread_id, at), f" at {at}"
    since = await steps_after(store, thread_id, number)
    await store.fork(thread_id, number, name, _fork_entries(last, f"forked from {thread_id!r}{where}", since))
    return name


def _fork_entries(last: Transition, why: str, since: list[Body]) -> tuple[Body, ...]:
    """What makes an open run another one; an effect in flight has an unknown outcome there, too."""
    if last.next_node == END:
        return ()
    run_id = str(uuid4())
    change = StateDelta({"run_id": run_id})
    # On its way out, why it ends is what the transition says, and so it stays.
    reason = last.why if last.next_node == Node.TERMINATE else why
    begun = [evolve(intent, run_id=run_id, policy="once") for intent in _in_flight(since)]
    return (evolve(last, run_id=run_id, node=FORK, delta=change, why=reason), *begun)


def _in_flight(since: list[Body]) -> list[Intent]:
    """The intents of a node without an outcome."""
    open_intents: dict[StepId, Intent] = {}
    for body in since:
        if isinstance(body, Intent):
            open_intents[body.step_id] = body
        elif isinstance(body, Outcome | Asked):  # a body that asked was left in good order
            open_intents.pop(body.step_id, None)
    return list(open_intents.values())
