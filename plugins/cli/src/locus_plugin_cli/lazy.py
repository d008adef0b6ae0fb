"""Commands by reference: each is imported when it is used, so that help and a typing mistake answer at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from locus_plugin_cli.common_options import CommonOptions, note_config

__all__ = ["UNREAD", "Root", "resolve"]

_CONTRIBUTED = "locus_plugin_cli.plugin_commands"

#: What is wrong with it was said as a warning.
UNREAD = "commands of plugins cannot be read before the configuration is trusted and correct"


def resolve(reference: str) -> Any:
    """The object behind ``"package.module:name"``; the one place of this package that imports by reference."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


class Root(click.Group):
    """The ``locus`` command: its own commands by reference, and those that active plugins contribute."""

    #: Name -> (reference, what the help says about it).
    table: Mapping[str, tuple[str, str]] = {}

    def contributed(self, ctx: click.Context) -> dict[str, click.Command]:
        """The commands of the plugins that are switched on, by name; asked for once."""
        known: dict[str, click.Command] | None = ctx.meta.get(_CONTRIBUTED)
        if known is None:
            ask = resolve("locus_plugin_cli.plugin_commands:load_commands")
            known = ctx.meta[_CONTRIBUTED] = ask(ctx.ensure_object(CommonOptions), frozenset(self.table))
        return known

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command that can be used here."""
        return [*self.table, *(sorted(self.contributed(ctx)) if _configured(ctx.ensure_object(CommonOptions)) else ())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None when it is unknown."""
        if cmd_name in self.table:
            command: click.Command = resolve(self.table[cmd_name][0])
            return command
        return self.contributed(ctx).get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but with the lazy commands among those that may have been meant."""
        if args and args[0] not in self.table:
            note_config(ctx, args[1:])
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as e:
            name = e.command_name
            if resolve("locus_plugin_cli.plugin_commands:is_plugin")(name):
                told = f"a plugin of that name is installed: locus -p {name} {name} switches it on"
                raise click.UsageError(f"No such command {name!r}; {told}", ctx=ctx) from None
            if resolve("locus_plugin_cli.plugin_commands:is_unread")(ctx.ensure_object(CommonOptions)):
                raise click.UsageError(f"No such command {name!r} of locus itself; {UNREAD}", ctx=ctx) from None
            known = [*self.table, *self.contributed(ctx)]
            raise click.exceptions.NoSuchCommand(e.command_name, possibilities=known, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help, without importing those of this package."""
        rows = [(name, text) for name, (_, text) in self.table.items()]
        for name in self.list_commands(ctx)[len(rows) :]:
            rows.append((name, self.contributed(ctx)[name].get_short_help_str(limit=100)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _configured(given: CommonOptions) -> bool:
    """Whether any plugin may be switched on at all: a guess that costs nothing, where knowing imports the kernel."""
    if given.plugins or given.config or os.environ.get("LOCUS_PLUGINS"):
        return True
    here = Path.cwd()
    return any(_configures(folder) for folder in (here, *here.parents))


def _configures(folder: Path) -> bool:
    if (folder / "locus.toml").is_file():
        return True
    shared = folder / "pyproject.toml"
    try:
        return shared.is_file() and b"tool.locus" in shared.read_bytes()
    except OSError:
        return False
