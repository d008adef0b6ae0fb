"""``locus deep /undo``: the last turn taken back, and what of it could not be."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click

from locus.core.errors import ConfigError, closest
from locus.plugin import Lazy
from locus_deepagent.command.recipe import DeepRecipe
from locus_deepagent.command.undo import FilesChanged, Undone, undo
from locus_plugin_filesystem import VersionedFiles

__all__ = ["is_undo", "undo_turn"]

cli: Any = Lazy("locus.cli")

_UNDO: Final = "/undo"
_KEEP: Final = "keep"
#: Under this key of the metadata is what of a thread came from a file.
_IMPORTED: Final = "locus.imported"
#: How much of a first word that begins with a slash may differ from the command to be taken for it.
_ALMOST: Final = 0.7


def is_undo(words: Sequence[str]) -> bool:
    """Whether a task is the command.

    Raises:
        click.UsageError: it is probably meant to be, and is not.
    """
    typed = " ".join(words).split()
    if not typed or not typed[0].startswith("/"):
        return False
    if typed[0] == _UNDO and typed[1:] in ([], [_KEEP]):
        return True
    if typed[0] == _UNDO or (len(typed) < 3 and closest(typed[0], [_UNDO], _ALMOST)):
        raise click.UsageError(f"expected {_UNDO} or '{_UNDO} {_KEEP}', got {' '.join(typed)!r:.80}")
    return False


def undo_turn(ctx: click.Context, recipe: DeepRecipe, words: Sequence[str], given: Mapping[str, Any]) -> int:
    """Take back the last turn of a thread; gives the exit status.

    Args:
        ctx: the command's.
        recipe: as it was typed; what it works on is what the thread remembers.
        words: the command, and maybe ``keep``.
        given: the values of `turn_parameters`.

    Raises:
        click.UsageError: options of a run were typed with it.
        ConfigError: the thread was not begun by this user's ``locus deep``.
        LocusError: see `undo`.
    """
    if recipe != DeepRecipe() or given.get("answers") or given.get("no_keep"):
        raise click.UsageError(f"{_UNDO} goes with --thread, --continue, --checkpointer and --json alone", ctx)
    with cli.open_thread(ctx, recipe, given) as found:
        folder = found.recipe.folder
        if folder is None or _IMPORTED in found.state.metadata:
            # The author of such a thread would choose what is written into the folder.
            raise ConfigError(
                f"thread {found.thread!r} was imported, or not begun by this command here: its files are not touched"
            )
        files = VersionedFiles(folder, links=False)
        keep = " ".join(words).split()[1:] == [_KEEP]
        try:
            done = found.journals.run(undo(found.journals.store, found.thread, files, keep=keep))
        except FilesChanged as e:
            if given.get("as_json"):
                cli.print_json({"undone": False, "changed": list(e.paths)})
            cli.say(f"nothing was undone: {_names(e.paths)} changed since, or the old content is not known")
            typed = shlex.join(["locus", "deep", "--thread", found.thread, f"{_UNDO} {_KEEP}"])
            cli.say(f"`{typed}` leaves these as they are, and undoes the rest")
            return 1
        store = () if found.journals.kept.text is None else ("--checkpointer", found.journals.kept.text)
    if given.get("as_json"):
        cli.print_json(
            {
                "undone": True,
                "thread_id": done.thread,
                "restored": list(done.restored),
                "removed": list(done.removed),
                "left": list(done.left),
                "not_undone": dict(done.not_undone),
            }
        )
    elif not given.get("quiet"):
        cli.print_lines(_report(done))
    for name, count in done.not_undone.items():
        cli.say(f"not undone: what {cli.one_line(name)} did ({count} call{'s' * (count != 1)})")
    if done.thread is None:
        cli.say("that was the first turn: the conversation is forgotten")
    else:
        cli.say(f"go on with: {shlex.join(['locus', 'deep', '--thread', done.thread, *store, 'TASK'])}")
    return 0


def _report(done: Undone) -> list[str]:
    lines = [f"restored {cli.one_line(path)}" for path in done.restored]
    lines += [f"removed {cli.one_line(path)}" for path in done.removed]
    lines += [f"left as it is: {cli.one_line(path)}" for path in done.left]
    return lines or ["no file had to be changed"]


def _names(paths: Iterable[str]) -> str:
    return ", ".join(map(cli.one_line, paths))
