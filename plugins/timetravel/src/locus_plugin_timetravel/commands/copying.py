"""``locus threads copy``: the threads of one store in another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import frozen

import locus_plugin_timetravel as timetravel
from locus.core import has_all_of
from locus.core.errors import NothingToResume
from locus.core.journal import END, Submitted, Transition
from locus.journal import QueueStore
from locus.journal.listing import QUEUE
from locus_plugin_timetravel.commands.base import ThreadCommand, as_json_option, cli, not_blank

if TYPE_CHECKING:
    from locus.core.journal import Body
    from locus.journal import JournalStore, Offer, ThreadInfo

__all__ = ["copy"]

#: Why a thread is left out to which something was sent: to begin it and to send it that again would be two writes, and
#: between them a worker of the other store would run what was cancelled here.
_UNREAD: Final = "a turn, an answer or a cancel was sent to it that it has not read; let a worker run it first"

#: Why a thread is left out that its queue does not offer: no store tells when it will.
_NOT_READY: Final = "it sleeps until its time, or a worker was offered it just now; let a worker run it first"


@frozen(kw_only=True)
class _Result:
    """What became of a thread.

    Args:
        thread_id: the thread.
        left_out: why it was not copied, or ``""``.
        note: what else there is to say.
        is_missing: whether it was left out although it is not in the other store.
    """

    thread_id: str
    left_out: str = ""
    note: str = ""
    is_missing: bool = False


@click.command(cls=ThreadCommand, short_help="Copy threads to another store.")
@click.argument("ids", nargs=-1, type=not_blank, metavar="[ID]...")
@click.option("--to", "target", type=not_blank, required=True, metavar="PLUGIN:REST", help="The store to copy to.")
@as_json_option
@click.pass_context
def copy(ctx: click.Context, *, ids: tuple[str, ...], target: str, as_json: bool, checkpointer: str | None) -> int:
    """Copy the threads with these IDs, or all of them, to the store that --to names.

    \b
    locus threads copy --to nats://db1:4222
    locus threads copy order-17 --to nats://db1:4222 --checkpointer runs.db

    A copy is the same run under the same id and keys, with the answers and approvals on record. A turn that waits for a
    worker waits there, too, with its priority: let workers look into one of the stores from then on. A thread whose run
    is under way is left out; let it end first. So is one that sleeps until its time, or was sent something that it has
    not read. One that is there already is left out as well, so the command can be run again.

    Exit status: 0 all are there; 1 a thread was left out that is not there, or a store failed; 2 nothing is kept here.
    """  # noqa: D301  click reads the character
    with (
        cli.open_journals(ctx, checkpointer) as journals,
        cli.open_journals(ctx, target, writes=True) as others,
    ):
        chosen = _choose(journals, ids)
        priorities = journals.run(_read_priorities(journals.store, others.store, chosen))
        results: list[_Result] = []
        for info in chosen:
            result = journals.run(_copy(journals.store, others.store, info, priorities))
            results.append(result)
            _show(result, as_json=cli.wants_json(ctx, as_json=as_json))
    return int(any(result.is_missing for result in results))


def _choose(journals: Any, ids: tuple[str, ...]) -> list[ThreadInfo]:
    """The threads with these ids, or all of them, the oldest first.

    Raises:
        NothingToResume: one of them does not exist, or the store has no threads.
    """
    every = {info.thread_id: info for info in journals.run(journals.store.threads()) if info.head}
    if not every:  # a source whose name is mistyped must not look like one that was copied
        path = getattr(journals.store, "path", None)
        hint = "; there is no such file" if isinstance(path, Path) and not path.exists() else ""
        raise NothingToResume(f"no threads in {journals.kept.name}{hint}")
    for thread_id in ids:
        if thread_id not in every:
            raise journals.unknown(thread_id)
    return [every[name] for name in ids] if ids else sorted(every.values(), key=_sort_key)


def _sort_key(info: ThreadInfo) -> tuple[float, str]:
    return (0.0 if info.updated_at is None else info.updated_at.timestamp()), info.thread_id


def _show(result: _Result, *, as_json: bool) -> None:
    text = f"left out: {result.left_out}" if result.left_out else result.note
    if as_json:
        cli.print_json({"thread_id": result.thread_id, "copied": not result.left_out, "text": text}, indent=None)
        return
    if not result.left_out:
        cli.print_text(f"{result.thread_id}\n")
    if text:
        cli.say(f"{result.thread_id}: {text}")


async def _read_priorities(source: Any, target: JournalStore, chosen: Sequence[ThreadInfo]) -> dict[str, int]:
    """The priority of each thread that its queue offers now.

    A store tells neither the priority of a thread nor from when it is offered; its offers do. So all that is ready is
    taken and given back at once, in the same order.
    """
    found: dict[str, Offer] = {}
    if not (has_all_of(source, QueueStore) and has_all_of(target, QueueStore)):
        return {}
    queued = (info.metadata.get(QUEUE) for info in chosen if info.status == "queued" and info.holder is None)
    try:
        for queue in dict.fromkeys(filter(None, queued)):
            while (offer := await source.take([queue], "locus threads copy")) is not None:
                if offer.thread_id in found:  # this has taken so long that the lease of the first ones is over
                    await offer.back()
                    break
                found[offer.thread_id] = offer
    finally:
        for each in found.values():
            await each.back()
    return {name: each.priority for name, each in found.items()}


async def _copy(source: Any, target: Any, info: ThreadInfo, priorities: dict[str, int]) -> _Result:
    name = info.thread_id
    there = _Result(thread_id=name, left_out="it is there already")
    if await target.peek(name) is not None:
        return there
    has_queues = has_all_of(source, QueueStore)
    # Before the entries are read: what a worker takes up in between is among those.
    has_unread = has_queues and bool(await source.signals(name))
    bodies = [entry.body for entry in await source.read(name)]
    queue = _waits_in(bodies) if info.status in ("queued", None) and has_all_of(target, QueueStore) else ""
    why = ""
    if info.holder is not None or not (queue or _is_at_rest(bodies, info)):
        why = f"its run is under way ({info.status}); let it end first"
    elif has_unread:
        why = _UNREAD
    elif queue and has_queues and name not in priorities:
        why = _NOT_READY
    if why:
        return _Result(thread_id=name, left_out=why, is_missing=True)
    if queue:
        is_new = await target.submit(name, bodies, queue=queue, priority=priorities.get(name, 0))
        return _Result(thread_id=name, note=f"it waits for a worker in the queue {queue}") if is_new else there
    await timetravel.import_thread(target, await timetravel.export_thread(source, name), trusted=True)
    return _Result(thread_id=name)


def _waits_in(bodies: list[Body]) -> str:
    """The queue of a turn that was handed in and that no worker has begun, or ``""``."""
    if any(isinstance(body, Transition) for body in bodies):
        return ""
    return next((body.queue for body in reversed(bodies) if isinstance(body, Submitted)), "")


def _is_at_rest(bodies: list[Body], info: ThreadInfo) -> bool:
    """Whether the newest run has ended, or waits for a person."""
    newest = next((body for body in reversed(bodies) if isinstance(body, Transition)), None)
    has_ended = newest is not None and newest.next_node == END and not isinstance(bodies[-1], Submitted)
    return has_ended or info.status == "waiting"
