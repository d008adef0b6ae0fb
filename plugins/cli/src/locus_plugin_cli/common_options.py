"""What every command takes: which configuration, which plugins, and whether tracebacks are wanted.

Imports nothing of the kernel, so that ``locus --help`` costs no more than click.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from locus_plugin_cli.parameter_types import NAMES, NOT_BLANK
from locus_plugin_cli.streams import standard

__all__ = [
    "CommonOptions",
    "claim_output",
    "common_options",
    "json_events_option",
    "json_lines_option",
    "json_option",
    "note_config",
    "quiet_option",
]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class CommonOptions:
    """The options that all commands share, as given on the command line; ``ctx.obj`` of every command.

    Args:
        debug: show tracebacks.
        config: the configuration file; None = the nearest.
        plugins: the values of ``-p``, in order.
        no_plugins: nothing that is on by default, or that the configuration or the environment switches on.
        vetted: the vetted configuration by search location, so that a command reads it only once.
    """

    debug: bool = False
    config: str | None = None
    plugins: list[str] = field(default_factory=list)
    no_plugins: bool = False
    vetted: dict[Any, Any] = field(default_factory=dict)

    @property
    def switches(self) -> tuple[str, ...]:
        """What the command line says about plugins: ``name``, ``no:name``, ``no:*``."""
        return (*(("no:*",) if self.no_plugins else ()), *self.plugins)


def claim_output(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """The callback of an option that makes the output machine-readable: from then on nothing else is written there."""
    if value and not ctx.resilient_parsing:
        standard().claim()
    return value


def _for_programs(*names: str, help: str) -> Callable[[F], F]:  # noqa: A002  click's name
    return click.option(*names, is_flag=True, callback=claim_output, help=help)


#: The options of commands that show a run.
json_events_option: Callable[[F], F] = _for_programs(
    "--json", "as_json", help="One event a line as JSON, and nothing else on the output."
)
quiet_option: Callable[[F], F] = _for_programs(
    "-q", "--quiet", help="The final answer, and nothing else on the output."
)
#: Of those that show one value, or a list of them.
json_option: Callable[[F], F] = _for_programs("--json", "as_json", help="As JSON.")
json_lines_option: Callable[[F], F] = _for_programs("--json", "as_json", help="One JSON object a line.")


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Note an option, wherever it is on the line: before the command or after it."""
    given = ctx.ensure_object(CommonOptions)
    if param.name == "plugins":
        given.plugins += [name for text in value for name in text]
    elif value is not None and value is not False:
        setattr(given, str(param.name), value)


def note_config(ctx: click.Context, args: Sequence[str]) -> None:
    """Note the configuration file that is named behind a command of a plugin: before that, the command is not known.

    Args:
        ctx: of the group.
        args: what comes behind the command.
    """
    given = ctx.ensure_object(CommonOptions)
    for n, word in enumerate(args):
        name, is_joined, value = word.partition("=")
        if given.config is not None or word == "--":
            break
        if name == "--config":
            given.config = value if is_joined else next(iter(args[n + 1 :]), None)


def common_options(function: F) -> F:
    """Add the options of `CommonOptions` to a command or a group."""
    # Eager options are handled in the order of the line, so `locus -p audit --help` knows what audit adds.
    for option in (
        click.option(
            "-p",
            "--plugin",
            "plugins",
            type=NAMES,
            metavar="NAME,...",
            multiple=True,
            expose_value=False,
            is_eager=True,
            callback=_keep,
            help="Switch plugins on, or off with no:NAME; repeatable.",
        ),
        click.option(
            "--no-plugins",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_keep,
            help="Switch off provenance, and what the configuration and LOCUS_PLUGINS switch on; -p still counts.",
        ),
        click.option(
            "--config",
            type=NOT_BLANK,
            metavar="PATH",
            expose_value=False,
            is_eager=True,
            callback=_keep,
            help="Configuration file, trusted; default: the nearest locus.toml, or pyproject.toml with [tool.locus].",
        ),
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_keep,
            help="Show the traceback of an error.",
        ),
    )[::-1]:
        function = option(function)
    return function
