"""A group without the commands whose distribution is not installed; typing one of them tells what to install."""

from __future__ import annotations

from importlib.util import find_spec

import click

__all__ = ["NeedingGroup"]

#: Command -> the distribution that does its work.
_DISTRIBUTIONS = dict.fromkeys(("diff", "export", "fork", "import", "replay"), "locus-plugin-timetravel")


class NeedingGroup(click.Group):
    """The group of ``locus threads``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands that can be used here."""
        return [name for name in super().list_commands(ctx) if _missing(name) is None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None when it is unknown, or cannot be used here."""
        return super().get_command(ctx, cmd_name) if _missing(cmd_name) is None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a hint for a command whose distribution is not installed."""
        distribution = _missing(args[0])
        if distribution is not None:
            raise click.UsageError(f"No such command {args[0]!r}; pip install {distribution} adds it", ctx=ctx)
        return super().resolve_command(ctx, args)


def _missing(name: str) -> str | None:
    """The distribution that a command needs and that is not installed."""
    distribution = _DISTRIBUTIONS.get(name)
    if distribution is None or find_spec(distribution.replace("-", "_")) is not None:
        return None
    return distribution
