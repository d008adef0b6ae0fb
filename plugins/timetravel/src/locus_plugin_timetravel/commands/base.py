"""What the commands share: the command line's options, which it offers as names of ``locus.cli``.

The command line is another distribution, which is there when a command is called and need not be before: whatever is
used of it is looked up then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from locus.plugin import Lazy

__all__ = ["AgentCommand", "ThreadCommand", "as_json_option", "cli", "not_blank"]

cli: Any = Lazy("locus.cli")


def _claim_output(ctx: click.Context, param: click.Parameter, value: object) -> object:
    return cli.claim_output(ctx, param, value)


as_json_option: Callable[[Callable[..., int]], Callable[..., int]] = click.option(
    "--json", "as_json", is_flag=True, callback=_claim_output, help="As JSON."
)


class _Filled(click.ParamType[str]):
    """Text with something in it, as the options of the command line itself take it."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text.

        Raises:
            click.BadParameter: it is empty.
        """
        text: str = cli.NOT_BLANK.convert(value, param, ctx)
        return text


not_blank = _Filled()


class ThreadCommand(click.Command):
    """A command with ``--checkpointer``, which its function gets, and the options that every command has."""

    #: Whether it has the options of an agent as well; its function gets them by keyword.
    agent = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with other commands, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.thread_parameters(agent=self.agent), *found[own:]]


class AgentCommand(ThreadCommand):
    """A command that builds the agent of a thread."""

    agent = True
