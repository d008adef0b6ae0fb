"""``locus threads export``, ``import``, ``delete``, ``vacuum``: threads as files, and their room."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from locus.core.errors import CheckpointError, InputError, JournalError, ThreadBusy
from locus_plugin_cli import status
from locus_plugin_cli.approval_prompt import is_person_present
from locus_plugin_cli.commands.threads.base import as_json_option, journals_of, threads, wants_json
from locus_plugin_cli.common_options import common_options
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.lazy import resolve
from locus_plugin_cli.options import checkpointer_option
from locus_plugin_cli.output import Output, OutputClosed, print_json, say
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.text import format_bytes, one_line

__all__ = ["delete", "export", "import_", "vacuum"]


@threads.command(short_help="Write a thread as JSON lines.")
@click.argument("thread_id", type=NOT_BLANK, metavar="ID")
@click.option(
    "-o",
    "--output",
    type=NOT_BLANK,
    metavar="FILE",
    help="The file to write, whole or not at all; default: the output.",
)
@checkpointer_option
@common_options
@click.pass_context
def export(ctx: click.Context, *, thread_id: str, output: str | None, checkpointer: str | None) -> int:
    """Write the thread ID as JSON lines, with nothing lost; `locus threads import` reads them."""
    with journals_of(ctx, checkpointer) as journals:
        journals.found(thread_id)
        lines = journals.run(resolve("locus.timetravel:export_thread")(journals.store, thread_id))
        if output is None or output == "-":
            _write_out(lines)
        else:
            _write_file(Path(output), lines)
    return status.OK


def _write_out(lines: Iterable[str]) -> None:
    try:
        for line in lines:
            # In pieces as they are: a console would break long lines.
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError as e:
        raise OutputClosed from e


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


@threads.command("import", short_help="Read a thread from JSON lines.")
@click.argument("source", type=NOT_BLANK, metavar="FILE")
@click.option("--into", type=NOT_BLANK, metavar="NAME", help="Another id than the thread had.")
@as_json_option
@checkpointer_option
@common_options
@click.pass_context
def import_(ctx: click.Context, *, source: str, into: str | None, as_json: bool, checkpointer: str | None) -> int:
    """Read the thread in FILE, which `locus threads export` wrote; - reads standard input. Prints its id.

    A file that is damaged or cut off is refused whole.
    """
    with journals_of(ctx, checkpointer, writes=True) as journals:
        try:
            made = journals.run(resolve("locus.timetravel:import_thread")(journals.store, _lines(source), into=into))
        except CheckpointError as e:
            e.add_note(f"in {'what was read' if source == '-' else source}")
            raise
    if wants_json(ctx, as_json=as_json):
        print_json({"thread_id": made})
    else:
        Output(sys.stdout).piece(f"{made}\n")
    return status.OK


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
        raise InputError(f"{source}: it is no exported thread: no UTF-8 text at byte {e.start}") from e


@threads.command(short_help="Forget threads.")
@click.argument("thread_ids", type=NOT_BLANK, metavar="ID...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json_option
@checkpointer_option
@common_options
@click.pass_context
def delete(
    ctx: click.Context, *, thread_ids: tuple[str, ...], yes: bool, as_json: bool, checkpointer: str | None
) -> int:
    """Forget the threads ID...; their forks stay whole. Asks first; where nobody can answer, it needs --yes.

    Exit status: 0; 1 when one of them is running and was left; 2 when there is no such thread, and nothing was done.
    """
    names = tuple(dict.fromkeys(thread_ids))
    as_json = wants_json(ctx, as_json=as_json)
    with journals_of(ctx, checkpointer) as journals:
        known = {info.thread_id for info in journals.run(journals.store.threads())}
        for name in names:
            if name not in known:
                raise journals.unknown(name)
        if not yes and (as_json or not is_person_present()):
            raise click.UsageError("this forgets them for good; say --yes", ctx)
        if not yes and not click.confirm(f"Forget {', '.join(map(one_line, names))}?", err=True):
            say("nothing was deleted")
            return status.FAILED
        gone = list(_deleted(journals, names))
    if as_json:
        print_json({"deleted": gone})
    else:
        Output(sys.stdout).piece("".join(f"deleted {one_line(name)}\n" for name in gone))
    return status.OK if len(gone) == len(names) else status.FAILED


def _deleted(journals: Journals, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            if journals.run(journals.store.delete(name)):
                yield name
        except ThreadBusy as e:
            say(explain_error(e)[1])


@threads.command(short_help="Give the room of deleted threads back to the disk.")
@as_json_option
@checkpointer_option
@common_options
@click.pass_context
def vacuum(ctx: click.Context, *, as_json: bool, checkpointer: str | None) -> int:
    """Give the room of deleted threads back to the disk, and say how much that was."""
    with journals_of(ctx, checkpointer) as journals:
        tidy = getattr(journals.store, "vacuum", None)
        if tidy is None:
            raise JournalError(f"{journals.kept.name} needs no vacuum: {type(journals.store).__name__} has none")
        # What a store returns is its own affair, beside a number of bytes.
        freed = journals.run(tidy())
    found = freed if isinstance(freed, int) else None
    if wants_json(ctx, as_json=as_json):
        print_json({"freed_bytes": found})
    else:
        Output(sys.stdout).piece("done\n" if found is None else f"{format_bytes(max(0, found))} freed\n")
    return status.OK
