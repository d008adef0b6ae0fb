"""A group of commands that plugins add to."""

from __future__ import annotations

from collections.abc import Mapping

import click

from locus_plugin_cli.common_options import CommonOptions, note_config
from locus_plugin_cli.distributions import install_command
from locus_plugin_cli.lazy import UNREAD
from locus_plugin_cli.plugin_commands import is_unread, load_group

__all__ = ["OpenGroup"]

#: Command -> the plugin that adds it, for the hint where it is not installed.
_PLUGINS: Mapping[str, str] = dict.fromkeys(("copy", "diff", "export", "fork", "import", "replay"), "timetravel")


class OpenGroup(click.Group):
    """A group with its own commands and those that the installed plugins offer for it, see `load_group`."""

    def contributed_commands(self, ctx: click.Context) -> Mapping[str, click.Command]:
        """The commands of plugins, by name; looked for once for each command line."""
        known: Mapping[str, click.Command] | None = ctx.meta.get(f"{__name__}.{self.name}")
        if known is None:
            known = load_group(ctx.ensure_object(CommonOptions), str(self.name), self.commands)
            ctx.meta[f"{__name__}.{self.name}"] = known
        return known

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command that can be used here, by name."""
        return sorted({*self.commands, *self.contributed_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None; plugins are asked only for one that the group does not have."""
        own = super().get_command(ctx, cmd_name)
        return own if own is not None else self.contributed_commands(ctx).get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but with the commands of plugins among those that may have been meant."""
        if args and args[0] not in self.commands:
            note_config(ctx, args[1:])
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as e:
            name = e.command_name
            if is_unread(ctx.ensure_object(CommonOptions)):
                raise click.UsageError(f"No such command {name!r} of locus itself; {UNREAD}", ctx=ctx) from None
            if name in _PLUGINS:
                hint = f"No such command {name!r}; {install_command(_PLUGINS[name])} adds it"
                raise click.UsageError(hint, ctx=ctx) from None
            raise click.exceptions.NoSuchCommand(name, possibilities=self.list_commands(ctx), ctx=ctx) from None
