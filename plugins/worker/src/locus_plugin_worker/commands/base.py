"""What the commands share: options, the store, and how a line looks.

The command line is another distribution, which is there when a command is called and need not be before: whatever is
used of it is looked up then, as names of ``locus.cli``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click

from locus.core.errors import ConfigError
from locus.journal import JournalStore
from locus.plugin import Lazy
from locus_plugin_worker.stores import keeps_queues

__all__ = [
    "QueueCommand",
    "Seconds",
    "age",
    "as_json_option",
    "cli",
    "clock",
    "not_blank",
    "open_queues",
    "shorten",
    "store_options",
]

cli: Any = Lazy("locus.cli")

#: Characters of a text on a line of a list.
_WIDTH = 72


def _claim_output(ctx: click.Context, param: click.Parameter, value: object) -> object:
    return cli.claim_output(ctx, param, value)


as_json_option: Callable[[Callable[..., int]], Callable[..., int]] = click.option(
    "--json", "as_json", is_flag=True, callback=_claim_output, help="One JSON object a line."
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


class Seconds(click.FloatRange):
    """A number of seconds in a range; ``inf`` is without end. "Not a number" is refused, which click lets pass."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: it is not a number, or out of range.
        """
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return number


class QueueCommand(click.Command):
    """A command with ``--checkpointer``, which its function gets, and the options that every command has."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with other commands, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.thread_parameters(), *found[own:]]


@contextmanager
def open_queues(
    ctx: click.Context, checkpointer: str | None, *, writes: bool = False, store: JournalStore | None = None
) -> Iterator[Any]:
    """The store that a command is about, see ``cli.open_journals``.

    Args:
        ctx: the command's.
        checkpointer: ``--checkpointer``.
        writes: a thread may be added to it.
        store: what counts where the command line names none: that of an agent.

    Raises:
        ConfigError: it keeps no queues.
    """
    with cli.open_journals(ctx, checkpointer, writes=writes, store=store) as journals:
        if not keeps_queues(journals.store):
            raise ConfigError(
                f"{journals.kept.name} keeps conversations and no queues; name a store that does with --checkpointer, "
                "such as sqlite:runs.db"
            )
        yield journals


def store_options(journals: Any) -> tuple[str, ...]:
    """The words with which a command line gets to an open store again; none where it needs none."""
    return () if journals.kept.text is None else ("--checkpointer", journals.kept.text)


def shorten(text: str) -> str:
    """A text on one line, and not too long for it."""
    line: str = cli.one_line(text)
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4]} ..."


def age(at: datetime | None) -> str:
    """How long ago something was, roughly; ``"-"`` where that is not known."""
    if at is None:
        return "-"
    passed = max(0.0, (datetime.now(UTC) - at).total_seconds())
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if passed >= unit:
            return f"{passed // unit:.0f} {name}"
    return f"{passed:.0f} s"


def clock(at: datetime) -> str:
    """A time as the clocks here show it."""
    return f"{at.astimezone():%H:%M:%S}"
