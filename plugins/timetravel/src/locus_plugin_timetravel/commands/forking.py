"""``locus threads fork``: going another way from a point of a thread."""

from __future__ import annotations

import shlex

import click

import locus_plugin_timetravel as timetravel
from locus_plugin_timetravel.commands.base import ThreadCommand, as_json_option, cli, not_blank

__all__ = ["fork"]


@click.command(cls=ThreadCommand, short_help="Make another thread out of the beginning of one.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@click.option(
    "--at", type=click.IntRange(min=1), metavar="N", help="The last transition that both have; default: the newest."
)
@click.option(
    "--into",
    type=not_blank,
    metavar="NAME",
    help="The new thread's id; default: the old one with a few letters behind it.",
)
@as_json_option
@click.pass_context
def fork(
    ctx: click.Context, *, thread_id: str, at: int | None, into: str | None, as_json: bool, checkpointer: str | None
) -> int:
    """Make another thread that begins like the thread ID, up to the transition N; prints its id.

    `locus threads show ID` numbers the transitions. The thread ID stays as it is.
    """
    with cli.open_journals(ctx, checkpointer) as journals:
        journals.found(thread_id)
        made = journals.run(timetravel.fork(journals.store, thread_id, at=at, into=into))
        is_open = journals.found(made).open_node is not None
        store = () if journals.kept.text is None else ("--checkpointer", journals.kept.text)
    if cli.wants_json(ctx, as_json=as_json):
        cli.print_json({"thread_id": made, "resumable": is_open})
        return 0
    cli.print_text(f"{made}\n")
    words = ["threads", "resume", made, *store] if is_open else ["run", "--thread", made, *store, "PROMPT"]
    cli.say(f"go on with: {shlex.join(['locus', *words])}")
    return 0
