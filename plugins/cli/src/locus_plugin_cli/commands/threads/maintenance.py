"""``locus threads verify``, ``salvage``, ``backup``: the care of a store that is a file."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from locus.core.errors import ConfigError
from locus_plugin_cli import status
from locus_plugin_cli.commands.threads.base import open_journals, threads, wants_json
from locus_plugin_cli.common_options import common_options, json_option
from locus_plugin_cli.failures import name_commands
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.options import checkpointer_option
from locus_plugin_cli.output import Output, print_json, say
from locus_plugin_cli.text import one_line
from locus_plugin_cli.view.tally import count_of

__all__ = ["backup", "salvage", "verify"]

_INTO = click.Path(path_type=Path)


@threads.command(short_help="Check that everything kept is what was written.")
@json_option
@checkpointer_option
@common_options
@click.pass_context
def verify(ctx: click.Context, *, as_json: bool, checkpointer: str | None) -> int:
    """Compare everything in the store with its checksums, and list what is damaged. Runs may go on meanwhile.

    `locus threads salvage INTO` saves what can be read of a damaged file.
    Exit status: 0 all is in good order; 1 something is damaged, or the file cannot be opened; 2 the store of
    these threads offers no check.
    """
    with open_journals(ctx, checkpointer) as journals:
        found = journals.run(_offered(journals, "verify")())
    if wants_json(ctx, as_json=as_json):
        print_json(asdict(found))
    else:
        for each in found.damage:
            say(name_commands(one_line(each.message)))
        verdict = "damaged" if found.damage else "in good order"
        Output().piece(f"{count_of(found.threads, 'thread')}, {_entries(found.entries)}: {verdict}\n")
        if found.damage:
            say("`locus threads salvage NEW.db` saves what can be read")
    return status.FAILED if found.damage else status.OK


@threads.command(short_help="Save what can be read of a damaged store.")
@click.argument("into", type=_INTO)
@json_option
@checkpointer_option
@common_options
@click.pass_context
def salvage(ctx: click.Context, *, into: Path, as_json: bool, checkpointer: str | None) -> int:
    """Write what can be read of a damaged file to the new file INTO: of each thread the entries before the damage.

    The damaged file is not changed; end what uses it first. Then look through the new one with `--checkpointer INTO`,
    and put it in the place of the old one.
    Exit status: 0 nothing was lost; 1 something was lost, which is listed, or nothing could be saved; 2 the store of
    these threads offers no salvage.
    """
    with open_journals(ctx, checkpointer) as journals:
        made = journals.run(_offered(journals, "salvage")(into))
    if wants_json(ctx, as_json=as_json):
        print_json(asdict(made))
    else:
        for each in made.damage:
            say(name_commands(one_line(each.message)))
        entries = _entries(sum(made.entries.values()))
        Output().piece(f"saved {count_of(len(made.entries), 'thread')}, {entries} to {into}\n")
    return status.FAILED if made.damage else status.OK


@threads.command(short_help="Copy the store while it is in use.")
@click.argument("into", type=_INTO)
@checkpointer_option
@common_options
@click.pass_context
def backup(ctx: click.Context, *, into: Path, checkpointer: str | None) -> int:
    """Copy the store, as it is at one moment, to the new file INTO. Runs may go on meanwhile.

    `cp` would leave out what is not in the main file yet. No thread of the copy is held: its open runs can be
    resumed, so use it only in the place of the original.
    Exit status: 0; 1 the copy could not be written; 2 the store of these threads offers no copy.
    """
    with open_journals(ctx, checkpointer) as journals:
        journals.run(_offered(journals, "backup")(into))
        Output().piece(f"copied {one_line(journals.kept.name)} to {into}\n")
    return status.OK


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"


def _offered(journals: Journals, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A method that a store may have beyond the protocol.

    Raises:
        ConfigError: it does not.
    """
    found: Callable[..., Coroutine[Any, Any, Any]] | None = getattr(journals.store, name, None)
    if found is None:
        raise ConfigError(
            f"{journals.kept.name}: this kind of store has no {name!r}; use the tools of the service or database that "
            "keeps it, or name an SQLite file with --checkpointer sqlite:PATH"
        )
    return found
