"""Handing a turn in: an entry of the thread's journal and its place in a queue, in one write."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from attrs import frozen

from locus.core.errors import InputError
from locus.core.journal import Submitted
from locus.core.messages import Message, Role
from locus.journal import QueueStore, Signal
from locus_plugin_worker.agents import queue_of
from locus_plugin_worker.stores import queue_store

if TYPE_CHECKING:
    from locus import Agent

__all__ = ["Turn", "submit_turn"]


@frozen(kw_only=True)
class Turn:
    """A turn that was handed in.

    Args:
        thread_id: its thread.
        run_id: of the run that it will be.
        queue: where it waits.
    """

    thread_id: str
    run_id: str
    queue: str


async def submit_turn(
    agent: Agent[Any, Any],
    prompt: str,
    *,
    store: QueueStore | None = None,
    thread_id: str | None = None,
    queue: str | None = None,
    priority: int = 0,
    not_before: datetime | None = None,
) -> Turn:
    """Hand a turn in.

    Args:
        agent: runs it; its name is recorded.
        prompt: the user's turn.
        store: where; None = the agent's checkpointer.
        thread_id: its thread; None = a new one.
        queue: the queue; None = that of the agent.
        priority: 0, 1 or 2; 2 goes first.
        not_before: when it is offered first; None = at once.

    Raises:
        ConfigError: the store is missing, or keeps no queues.
        InputError: the thread exists, and a turn that begins later can only begin a thread.
    """
    run_id, name = str(uuid4()), agent.name or ""
    thread = thread_id or f"thread-{uuid4().hex[:12]}"
    place = queue or queue_of(name)
    body = Submitted(run_id=run_id, prompt=Message(Role.USER, prompt), agent=name, queue=place)
    kept = queue_store(agent.runtime.store if store is None else store)
    if not await kept.submit(thread, [body], queue=place, priority=priority, not_before=not_before):
        if not_before is not None:
            raise InputError(f"thread {thread!r} exists; its next turn begins at once, leave the time out")
        await kept.signal(thread, Signal(body=body, id=run_id))
    return Turn(thread_id=thread, run_id=run_id, queue=place)
