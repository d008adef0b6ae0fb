"""Output without the kernel and rich, for code that must be quick and work even if the kernel does not."""

from __future__ import annotations

import click

from locus_plugin_cli import status
from locus_plugin_cli.streams import standard

__all__ = ["OutputClosed", "write_whole"]


class OutputClosed(click.ClickException):
    """The reader of the output went away (``| head``): everything ends quietly.

    It is not a `BrokenPipeError`, because that may as well come from a provider's connection.
    """

    exit_code = status.CLOSED_PIPE

    def __init__(self) -> None:
        super().__init__("the output is closed")


def write_whole(text: str) -> None:
    """Write text to the output as it is, but for a terminal, on which it is escaped.

    Raises:
        OutputClosed: it has no reader any more.
    """
    out = standard().out
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError as e:
        raise OutputClosed from e
