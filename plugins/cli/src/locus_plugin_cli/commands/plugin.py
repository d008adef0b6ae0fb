"""``locus plugin new``: the project of a plugin, ready to build."""

from __future__ import annotations

from pathlib import Path

import click

from locus.plugins import Catalogue
from locus_plugin_cli import status
from locus_plugin_cli.common_options import common_options
from locus_plugin_cli.output import print_text
from locus_plugin_cli.scaffold import KINDS, check_name, try_command, write_project

__all__ = ["plugin"]


@click.group(short_help="Write a plugin of your own.")
def plugin() -> None:
    """Write a plugin of your own."""


@plugin.command()
@click.argument("name")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(list(KINDS)),
    multiple=True,
    default=("hook",),
    show_default=True,
    help="What it brings; repeatable.",
)
@click.option("--dir", "folder", metavar="PATH", help="The folder to write; default: ./locus-plugin-NAME.")
@common_options
def new(*, name: str, kinds: tuple[str, ...], folder: str | None) -> int:
    """Write the project of a plugin NAME: it builds, installs and passes its own tests as it is.

    NAME is the one name of the plugin: its entry point, its table in locus.toml, its keyword of Agent, and for
    a provider what comes before the colon. Exit status: 0, or 2 when the name or the folder cannot be used.
    """
    # Uses the installed plugins, not a configuration, which may not be trusted here.
    check_name(name, Catalogue().names())
    target = Path(folder) if folder else Path(f"locus-plugin-{name.replace('_', '-')}")
    written = write_project(name, kinds, target)
    print_text(f"wrote {target}:\n")
    for path in written:
        print_text(f"  {path.as_posix()}\n")
    print_text(f"try it: {try_command(kinds, target)}\n")
    return status.OK
