"""``locus threads delete``, ``vacuum``: forgetting threads, and the room that they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from locus.core.errors import JournalError, ThreadBusy
from locus_plugin_cli import status
from locus_plugin_cli.approval_prompt import is_person_present
from locus_plugin_cli.commands.threads.base import open_journals, threads, wants_json
from locus_plugin_cli.common_options import common_options, json_option
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.options import checkpointer_option
from locus_plugin_cli.output import Output, print_json, say
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.text import format_bytes, one_line

__all__ = ["delete", "vacuum"]


@threads.command(short_help="Forget threads.")
@click.argument("thread_ids", type=NOT_BLANK, metavar="ID...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@checkpointer_option
@common_options
@click.pass_context
def delete(
    ctx: click.Context, *, thread_ids: tuple[str, ...], yes: bool, as_json: bool, checkpointer: str | None
) -> int:
    """Forget the threads ID...; their forks stay whole. Asks first; where nobody can answer, it needs --yes.

    Exit status: 0; 1 when one of them is running and was left; 2 when there is no such thread, and nothing was done.
    """
    names = tuple(dict.fromkeys(thread_ids))
    as_json = wants_json(ctx, as_json=as_json)
    with open_journals(ctx, checkpointer) as journals:
        known = {info.thread_id for info in journals.run(journals.store.threads())}
        for name in names:
            if name not in known:
                raise journals.unknown(name)
        if not yes and (as_json or not is_person_present()):
            raise click.UsageError("this forgets them for good; say --yes", ctx)
        if not yes and not click.confirm(f"Forget {', '.join(map(one_line, names))}?", err=True):
            say("nothing was deleted")
            return status.FAILED
        gone = list(_deleted(journals, names))
    if as_json:
        print_json({"deleted": gone})
    else:
        Output().piece("".join(f"deleted {one_line(name)}\n" for name in gone))
    return status.OK if len(gone) == len(names) else status.FAILED


def _deleted(journals: Journals, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            if journals.run(journals.store.delete(name)):
                yield name
        except ThreadBusy as e:
            say(explain_error(e)[1])


@threads.command(short_help="Give the room of deleted threads back to the disk.")
@json_option
@checkpointer_option
@common_options
@click.pass_context
def vacuum(ctx: click.Context, *, as_json: bool, checkpointer: str | None) -> int:
    """Give the room of deleted threads back to the disk, and say how much that was."""
    with open_journals(ctx, checkpointer) as journals:
        tidy = getattr(journals.store, "vacuum", None)
        if tidy is None:
            raise JournalError(f"{journals.kept.name} needs no vacuum: {type(journals.store).__name__} has none")
        # What a store returns is its own affair, beside a number of bytes.
        freed = journals.run(tidy())
    found = freed if isinstance(freed, int) else None
    if wants_json(ctx, as_json=as_json):
        print_json({"freed_bytes": found})
    else:
        Output().piece("done\n" if found is None else f"{format_bytes(max(0, found))} freed\n")
    return status.OK
