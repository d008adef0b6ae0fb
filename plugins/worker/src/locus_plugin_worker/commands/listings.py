"""``locus queues`` and ``locus workers``: what waits, and who works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from glob import escape
from typing import Any, Final

import click

from locus.journal import QueueDepth, pinned_queue
from locus_plugin_worker.commands.base import QueueCommand, age, as_json_option, cli, open_queues, store_options
from locus_plugin_worker.presence import Presence, read_presences

__all__ = ["queues", "workers"]

#: The queue of runs that one version of an agent goes on with.
_PINNED: Final = re.compile(re.escape(pinned_queue("NAME", "")).replace("NAME", "(.+)") + "(.+)")


@click.command(cls=QueueCommand, short_help="What waits in each queue.")
@as_json_option
@click.pass_context
def queues(ctx: click.Context, *, as_json: bool, checkpointer: str | None) -> int:
    """List the queues that have something in them, and whether a worker looks at each.

    READY runs wait for a worker, HELD ones are at one, SLEEPING ones wait for their time. AGAIN counts those that were
    offered to a worker before that has died or fallen silent. OLDEST is how long the first ready one has waited.
    A queue agent.NAME@VERSION holds runs that another version of the agent began: a worker with that version ends them.
    """
    with open_queues(ctx, checkpointer) as journals:
        found, served = journals.run(_read(journals.store))
        store = store_options(journals)
    if as_json:
        for name, depth in found:
            cli.print_json({"queue": name, **_depth_as_json(depth), "workers": served(name)}, indent=None)
        return 0
    if not found:
        cli.say(f"nothing is queued in {journals.kept.name}")
        return 0
    rows = [
        (
            cli.one_line(name),
            str(depth.ready),
            str(depth.held),
            str(depth.sleeping),
            str(depth.redelivered),
            age(depth.oldest),
            str(served(name)),
        )
        for name, depth in found
    ]
    cli.print_rows(("QUEUE", "READY", "HELD", "SLEEPING", "AGAIN", "OLDEST", "WORKERS"), rows)
    for name, depth in found:
        if depth.ready and not served(name):
            cli.say(f"no worker looks at {cli.one_line(name)}: start {_describe_start(name, store)}")
    return 0


def _describe_start(queue: str, store: Sequence[str]) -> str:
    """Which worker looks at a queue, for those who start one."""
    pinned = _PINNED.fullmatch(queue)
    if pinned is not None:
        agent, version = map(cli.one_line, pinned.groups())
        return f"`{shlex.join(['locus', 'worker', 'MODULE:NAME', *store])}` with version {version} of its agent {agent}"
    # Harmless where the queue has the name of the agent, which the queue does not tell.
    words = ["locus", "worker", "MODULE:NAME", "--queue", escape(cli.one_line(queue)), *store]
    return f"`{shlex.join(words)}` with its agent"


async def _read(store: Any) -> tuple[list[tuple[str, QueueDepth]], Any]:
    present = await read_presences(store)
    names = await store.queues()

    def served(queue: str) -> int:
        return sum(each.serves(queue) for each in present)

    return [(name, await store.depth(name)) for name in names], served


def _depth_as_json(depth: QueueDepth) -> dict[str, Any]:
    return {
        "ready": depth.ready,
        "held": depth.held,
        "sleeping": depth.sleeping,
        "redelivered": depth.redelivered,
        "oldest": None if depth.oldest is None else depth.oldest.isoformat(),
    }


@click.command(cls=QueueCommand, short_help="The workers that are alive.")
@as_json_option
@click.pass_context
def workers(ctx: click.Context, *, as_json: bool, checkpointer: str | None) -> int:
    """List the workers that are alive, with their queues and slots.

    A worker that was killed is gone from here when its lease is over, on one machine at once.
    """
    with open_queues(ctx, checkpointer) as journals:
        found: Sequence[Presence] = journals.run(read_presences(journals.store))
    if as_json:
        for each in found:
            cli.print_json(each.to_json(), indent=None)
        return 0
    if not found:
        cli.say(f"no worker is alive in {journals.kept.name}; `locus worker MODULE:NAME` starts one")
        return 0
    rows = [
        (cli.one_line(each.name), age(each.since), str(each.slots), cli.one_line(", ".join(each.queues)))
        for each in found
    ]
    cli.print_rows(("WORKER", "UP", "SLOTS", "QUEUES"), rows)
    return 0
