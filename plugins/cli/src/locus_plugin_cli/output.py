"""The output, and what happens when its reader goes away."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TextIO

import click
from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from locus_plugin_cli import status
from locus_plugin_cli.text import escape_controls

__all__ = ["Output", "OutputClosed", "print_json", "print_lines", "print_rows", "print_text", "say"]


class OutputClosed(click.ClickException):
    """The reader of the output went away (``| head``): everything ends quietly.

    No `BrokenPipeError`, because that may as well come from a provider's connection.
    """

    exit_code = status.CLOSED_PIPE

    def __init__(self) -> None:
        super().__init__("the output is closed")


class Output(Console):
    """A console that takes text as it is: no markup, no wrapping, no colours without a terminal."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command: rich would exit the process.

        Raises:
            OutputClosed: always.
        """
        raise OutputClosed

    def piece(self, text: str, style: str = "") -> None:
        """Write text where the last ended."""
        # A segment and no `Text`, which would turn tabs into blanks.
        self.print(Segments([Segment(escape_controls(text), self.get_style(style))]), end="")


def print_json(value: Any) -> None:
    """Write a value as JSON, for programs.

    Raises:
        OutputClosed: it has no reader any more.
    """
    Output(sys.stdout).piece(json.dumps(value, indent=2) + "\n")


def print_text(text: str) -> None:
    """Write text for a person, with its control characters escaped; it brings its own ends of lines.

    Raises:
        OutputClosed: it has no reader any more.
    """
    Output(sys.stdout).piece(text)


def print_lines(lines: Iterable[str]) -> None:
    """Write lines for programs, as they are: a console would break long ones.

    Raises:
        OutputClosed: they have no reader any more.
    """
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError as e:
        raise OutputClosed from e


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table: aligned columns on a terminal, the last one wrapped; tab-separated lines for programs.

    Raises:
        OutputClosed: it has no reader any more.
    """
    out = Output(sys.stdout)
    if not out.is_terminal:
        out.piece("".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows))
        return
    table = Table(box=None, pad_edge=False, show_header=bool(header))
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=name != header[-1])
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row))
    out.print(table, soft_wrap=False)


def say(text: str) -> None:
    """One line for the person, on standard error: the output is for what was asked for."""
    click.echo(f"locus: {text}", err=True)
