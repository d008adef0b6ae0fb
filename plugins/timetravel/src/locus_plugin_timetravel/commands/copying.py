"""``locus threads copy``: the threads of one store in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

import locus_plugin_timetravel as timetravel
from locus.core import has_all_of
from locus.core.journal import END, Submitted, Transition
from locus.journal import QueueStore
from locus_plugin_timetravel.commands.base import ThreadCommand, as_json_option, cli, not_blank

if TYPE_CHECKING:
    from locus.core.journal import Body
    from locus.journal import JournalStore, ThreadInfo

__all__ = ["copy"]


@frozen(kw_only=True)
class _Result:
    """What became of a thread.

    Args:
        thread_id: the thread.
        left_out: why it was not copied, or ``""``.
        note: what else there is to say.
        is_under_way: whether it was left out because its run is.
    """

    thread_id: str
    left_out: str = ""
    note: str = ""
    is_under_way: bool = False


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
    worker waits there, too: let workers look into one of the stores from then on. A thread whose run is under way is
    left out; let it end first. So is one that is there already, so the command can be run again.

    Exit status: 0 all are there; 1 a thread was left out because its run is under way, or a store failed.
    """  # noqa: D301  click reads the character
    with (
        cli.open_journals(ctx, checkpointer) as journals,
        cli.open_journals(ctx, target, writes=True) as others,
    ):
        every = {info.thread_id: info for info in journals.run(journals.store.threads()) if info.head}
        chosen = ids or tuple(sorted(every, key=lambda name: _sort_key(every[name])))
        for thread_id in chosen:
            if thread_id not in every:
                raise journals.unknown(thread_id)
        results: list[_Result] = []
        for thread_id in chosen:
            result = journals.run(_copy(journals.store, others.store, every[thread_id]))
            results.append(result)
            _show(result, as_json=cli.wants_json(ctx, as_json=as_json))
    return int(any(result.is_under_way for result in results))


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


async def _copy(source: JournalStore, target: JournalStore, info: ThreadInfo) -> _Result:
    name = info.thread_id
    there = _Result(thread_id=name, left_out="it is there already")
    if await target.peek(name) is not None:
        return there
    bodies = [entry.body for entry in await source.read(name)]
    queue = _waits_in(bodies)
    if queue and info.holder is None and has_all_of(target, QueueStore):
        queues: Any = target
        is_new = await queues.submit(name, bodies, queue=queue)
        return _Result(thread_id=name, note=f"it waits for a worker in the queue {queue}") if is_new else there
    if info.holder is not None or not _is_at_rest(bodies, info):
        why = f"its run is under way ({info.status}); let it end first"
        return _Result(thread_id=name, left_out=why, is_under_way=True)
    if has_all_of(source, QueueStore) and await source.signals(name):  # type: ignore[attr-defined]
        why = "a turn or an answer was sent to it that it has not read; let a worker run it first"
        return _Result(thread_id=name, left_out=why, is_under_way=True)
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
