"""``locus threads export``, ``import``: threads as files."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

import locus_plugin_timetravel as timetravel
from locus.core.errors import CheckpointError, InputError
from locus_plugin_timetravel.commands.base import ThreadCommand, as_json_option, cli, not_blank

__all__ = ["export", "import_"]


@click.command(cls=ThreadCommand, short_help="Write a thread as JSON lines.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@click.option(
    "-o",
    "--output",
    type=not_blank,
    metavar="FILE",
    help="The file to write, whole or not at all; default: the output.",
)
@click.pass_context
def export(ctx: click.Context, *, thread_id: str, output: str | None, checkpointer: str | None) -> int:
    """Write the thread ID as JSON lines, with nothing lost; `locus threads import` reads them."""
    with cli.open_journals(ctx, checkpointer) as journals:
        journals.found(thread_id)
        lines = journals.run(timetravel.export_thread(journals.store, thread_id))
        if output is None or output == "-":
            cli.print_lines(lines)
        else:
            _write_file(Path(output), lines)
    return 0


def _write_file(path: Path, lines: Iterable[str]) -> None:
    """Write a file that is there when it is whole.

    Raises:
        InputError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123 - it is open already
                file.writelines(f"{line}\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)  # noqa: PTH105 - pathlib's is the same
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as e:
        raise InputError(f"-o {path}: it cannot be written: {e.strerror or e}") from e


@click.command("import", cls=ThreadCommand, short_help="Read a thread from JSON lines.")
@click.argument("source", type=not_blank, metavar="FILE")
@click.option("--into", type=not_blank, metavar="NAME", help="Another id than the thread had.")
@click.option(
    "--trust",
    "trusted",
    is_flag=True,
    help="The file cannot have been changed by others: take over answers and approvals.",
)
@as_json_option
@click.pass_context
def import_(
    ctx: click.Context, *, source: str, into: str | None, trusted: bool, as_json: bool, checkpointer: str | None
) -> int:
    """Read the thread in FILE, which `locus threads export` wrote; - reads standard input. Prints its id.

    A file that is damaged or cut off is refused whole. What it says is data: answers and approvals of a run in the
    middle are asked for again, and its pending calls are shown before `locus threads resume` runs them.
    """
    with cli.open_journals(ctx, checkpointer, writes=True) as journals:
        try:
            made = journals.run(timetravel.import_thread(journals.store, _lines(source), into=into, trusted=trusted))
        except CheckpointError as e:
            e.add_note(f"in {'what was read' if source == '-' else source}")
            raise
    if cli.wants_json(ctx, as_json=as_json):
        cli.print_json({"thread_id": made})
    else:
        cli.print_text(f"{made}\n")
    return 0


def _lines(source: str) -> list[str]:
    """The lines of a file, or of standard input.

    Raises:
        InputError: it cannot be read, or is not text.
    """
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return data.decode("utf-8").split("\n")
    except OSError as e:
        raise InputError(f"{source}: it cannot be read: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise InputError(f"{source}: it is not an exported thread: not UTF-8 text at byte {e.start}") from e
