"""The output, and what happens when its reader goes away."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from locus_plugin_cli.plain_output import OutputClosed, write_whole
from locus_plugin_cli.streams import GuardedStream, say, standard
from locus_plugin_cli.text import escape_controls

__all__ = [
    "Output",
    "OutputClosed",
    "print_json",
    "print_lines",
    "print_rows",
    "print_text",
    "say",
    "to_json",
    "write_whole",
]

_CLEAR = "\r\x1b[2K"


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        # rich would exit the process.
        raise OutputClosed


class Output:
    """A stream with colours on a terminal: text is written without markup and wrapping, but escaped.

    Args:
        stream: where to; None = the output of the command line under way.
    """

    def __init__(self, stream: GuardedStream | None = None) -> None:
        self.stream = standard().out if stream is None else stream
        # Everything passed to it is escaped here, so it may bypass the guard of the stream.
        self._console = _Console(file=self.stream.trusted, highlight=False, markup=False, emoji=False, soft_wrap=True)

    @property
    def is_live(self) -> bool:
        """Whether this is a terminal on which a line can be rewritten."""
        return self.stream.is_terminal and not self._console.is_dumb_terminal

    @property
    def width(self) -> int:
        """Columns."""
        return self._console.width

    def piece(self, text: str, style: str = "") -> None:
        """Write text where the last ended.

        Raises:
            OutputClosed: it has no reader any more.
        """
        # A segment and no `Text`, which would turn tabs into blanks.
        self._console.print(Segments([Segment(escape_controls(text), self._console.get_style(style))]), end="")

    def rows(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table, see `print_rows`.

        Raises:
            OutputClosed: it has no reader any more.
        """
        if not self._console.is_terminal:
            self.piece("".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows))
            return
        table = Table(box=None, pad_edge=False, show_header=bool(header))
        for name in header:
            table.add_column(name, overflow="fold", no_wrap=name != header[-1])
        for row in rows:
            table.add_row(*(Text(escape_controls(cell)) for cell in row))
        self._console.print(table, soft_wrap=False)

    def rewrite(self, text: str = "") -> None:
        """Replace the line that the cursor is on; only where the output is live."""
        shown = escape_controls(text).replace("\n", " ")
        self.stream.trusted.write(f"{_CLEAR}\x1b[2m{shown}\x1b[0m" if shown else _CLEAR)
        self.stream.trusted.flush()


def to_json(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON in printable ASCII: no encoding, no terminal and no lone surrogate can break it."""
    # The one control character that JSON leaves as it is.
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Write a value as JSON, for programs.

    Args:
        value: plain data.
        indent: blanks a level; None = one line.

    Raises:
        OutputClosed: it has no reader any more.
    """
    write_whole(to_json(value, indent=indent) + "\n")


def print_text(text: str) -> None:
    """Write text for a person, with invisible characters escaped; the text has its own line ends.

    Raises:
        OutputClosed: it has no reader any more.
    """
    Output().piece(text)


def print_lines(lines: Iterable[str]) -> None:
    """Write lines for programs, unchanged; on a terminal, control characters in them are escaped.

    Raises:
        OutputClosed: they have no reader any more.
    """
    out = standard().out
    try:
        for line in lines:
            out.write(f"{escape_controls(line) if out.is_terminal else line}\n")
        out.flush()
    except BrokenPipeError as e:
        raise OutputClosed from e


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table: aligned columns on a terminal, the last one wrapped; tab-separated lines for programs.

    Raises:
        OutputClosed: it has no reader any more.
    """
    Output().rows(header, rows)
