"""``locus runs``: the runs of a store: how they are, and how to reach them wherever they are."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from locus.journal import ThreadQuery
from locus.journal.listing import QUEUE
from locus_plugin_worker.commands.base import QueueCommand, age, as_json_option, cli, open_queues, shorten
from locus_plugin_worker.commands.reaching import answer, cancel, retry
from locus_plugin_worker.commands.showing import show, watch
from locus_plugin_worker.states import STATES, describe_state, read_runs

__all__ = ["runs"]

#: How many runs a person is shown unless more are asked for.
_LIMIT: Final = 20


class _RunsGroup(QueueCommand, click.Group):
    """The group, which lists the runs where no command of it is named."""


@click.group(
    cls=_RunsGroup, invoke_without_command=True, short_help="List runs; show, watch, cancel, answer, retry one."
)
@click.option(
    "--state",
    "states",
    type=click.Choice(tuple(STATES)),
    multiple=True,
    help="Those in this state; repeatable.",
)
@click.option("--agent", metavar="NAME", help="Those of the agent with this name.")
@click.option("--queue", metavar="NAME", help="Those that were submitted to this queue.")
@click.option("--limit", type=click.IntRange(min=0), default=_LIMIT, show_default=True, help="At most N; 0 = all.")
@as_json_option
@click.pass_context
def runs(
    ctx: click.Context,
    *,
    states: tuple[str, ...],
    agent: str | None,
    queue: str | None,
    limit: int,
    as_json: bool,
    checkpointer: str | None,
) -> int:
    """List the runs, the most recently changed first; the commands below do more with one.

    \b
    locus runs --state running --state queued
    locus runs --queue tenant:acme
    locus runs watch ID
    locus runs answer ID yes

    A run is named by its thread, which `locus submit` prints. It is queued, running, waiting (for a person's answer),
    paused, where it sleeps with the time, crashed (another worker gets it), ended, failed, or set aside because its
    workers died there too often.
    """  # noqa: D301  click reads the character
    if ctx.invoked_subcommand is not None:
        cli.pass_on(ctx, checkpointer=checkpointer, as_json=as_json)
        return 0
    with open_queues(ctx, checkpointer) as journals:
        wanted = frozenset(status for state in states for status in STATES[state])
        metadata = {} if queue is None else {QUEUE: queue}
        query = ThreadQuery(status=wanted, agent_id=agent, metadata=metadata)
        rows = journals.run(read_runs(journals.store, query, limit))
        name = journals.kept.name
    if as_json:
        for row in rows:
            cli.print_json(row, indent=None)
        return 0
    if not rows:
        cli.say(
            f"no such runs in {name}" if states or agent or queue else f"no runs in {name}; `locus submit` begins one"
        )
        return 0
    cells = [
        (
            cli.one_line(r["thread_id"]),
            describe_state(r["state"], _time(r["not_before"])),
            _age(r["updated_at"]),
            cli.one_line(r["agent"]) or "-",
            shorten(r["title"]),
        )
        for r in rows
    ]
    cli.print_rows(("RUN", "STATE", "CHANGED", "AGENT", "PROMPT"), cells)
    return 0


def _time(at: str | None) -> datetime | None:
    return None if at is None else datetime.fromisoformat(at)


def _age(at: str | None) -> str:
    return age(_time(at))


for _command in (show, watch, cancel, answer, retry):
    runs.add_command(_command)
