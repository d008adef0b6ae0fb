"""``locus threads prune``: deleting the threads whose run ended long ago."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import click

from locus.core.errors import StoreError
from locus.journal import ThreadInfo
from locus_kit.retention import ENDED, forget, prunable
from locus_plugin_cli import status
from locus_plugin_cli.approval_prompt import is_person_present
from locus_plugin_cli.commands.threads.base import open_journals, threads, wants_json
from locus_plugin_cli.common_options import common_options, json_option
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.options import checkpointer_option
from locus_plugin_cli.output import Output, print_json, say
from locus_plugin_cli.overview import list_threads
from locus_plugin_cli.parameter_types import SPAN
from locus_plugin_cli.text import format_age, format_bytes, one_line, shorten
from locus_plugin_cli.view.tally import count_of

__all__ = ["prune"]


@threads.command(short_help="Delete the threads whose run ended long ago.")
@click.option(
    "--ended-before",
    "age",
    type=SPAN,
    required=True,
    metavar="AGE",
    help="How long ago, at least: 30d, 12h, 90min, 2w.",
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(sorted(ENDED)),
    multiple=True,
    help="Only those that ended in good order, or that failed. Default: both.",
)
@click.option("--dry-run", is_flag=True, help="Say which these are, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@checkpointer_option
@common_options
@click.pass_context
def prune(
    ctx: click.Context,
    *,
    age: timedelta,
    statuses: tuple[Literal["ended", "failed"], ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    checkpointer: str | None,
) -> int:
    """Delete the threads whose newest run ended, and that have not changed for AGE since.

    A thread is kept if its run is open, waits for an answer or was set aside, if a process is at work on it, if a
    fork shares its entries, or if it is that of a child run whose parent is kept. Asks first; where nobody can
    answer, it needs --yes. The room that becomes free in a file is given back to the disk.

    Exit status: 0; 1 the answer was no; 2 the command line is wrong.
    """
    as_json = wants_json(ctx, as_json=as_json)
    with open_journals(ctx, checkpointer) as journals:
        before = _moment(ctx, age)
        chosen = prunable(journals.run(list_threads(journals.store)), before, statuses or ENDED)
        if dry_run or not chosen:
            _print_chosen(chosen, as_json=as_json)
            return status.OK
        if not yes:
            if as_json or not is_person_present():
                raise click.UsageError(f"this deletes {count_of(len(chosen), 'thread')} for good; say --yes", ctx)
            _print_chosen(chosen, as_json=False)
            if not click.confirm(f"Delete {count_of(len(chosen), 'thread')}?", err=True):
                say("nothing was deleted")
                return status.FAILED
        gone = journals.run(forget(journals.store, chosen))
        room = _vacuum(journals) if gone else 0
    if as_json:
        print_json({"deleted": [info.thread_id for info in gone], "bytes_given_back": room})
        return status.OK
    Output().piece("".join(f"deleted {one_line(info.thread_id)}\n" for info in gone))
    if len(gone) < len(chosen):
        say(f"{count_of(len(chosen) - len(gone), 'thread')} changed meanwhile and kept")
    say(
        f"{count_of(len(gone), 'thread')} deleted"
        + (f", {format_bytes(room)} given back to the disk" if room > 0 else "")
    )
    return status.OK


def _moment(ctx: click.Context, age: timedelta) -> datetime:
    try:
        return datetime.now(UTC) - age
    except OverflowError:
        raise click.UsageError("--ended-before: nothing is that old", ctx) from None


def _print_chosen(chosen: Sequence[ThreadInfo], *, as_json: bool) -> None:
    if as_json:
        print_json({"would_delete": [info.thread_id for info in chosen]})
        return
    for info in chosen:
        assert info.updated_at is not None
        title = f": {shorten(info.title)}" if info.title else ""
        Output().piece(f"{one_line(info.thread_id)}\t{info.status} {format_age(info.updated_at)}{title}\n")
    if not chosen:
        say("no thread ended so long ago")


def _vacuum(journals: Journals) -> int:
    """How many bytes were given back to the disk; 0 where the store is not a file, or is in use."""
    vacuum = getattr(journals.store, "vacuum", None)
    if vacuum is None:
        return 0
    try:
        return int(journals.run(vacuum()))
    except StoreError as e:
        say(f"the room is free within the store, and not given back to the disk: {one_line(str(e))}")
        return 0
