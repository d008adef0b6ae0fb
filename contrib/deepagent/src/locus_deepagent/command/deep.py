"""``locus deep``: a deep agent on a folder, in a terminal."""

from __future__ import annotations

from typing import Any

import click

from locus.plugin import Lazy

__all__ = ["deep"]

#: The command line is another distribution, which is there when the command is called.
cli: Any = Lazy("locus.cli")
#: The help of any group of commands imports this module, and needs nothing of what does the work.
recipe: Any = Lazy("locus_deepagent.command.recipe")
undo_task: Any = Lazy("locus_deepagent.command.undo_task")


class _TurnCommand(click.Command):
    """A command with the options of ``locus run``, which its function gets by keyword."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with ``locus run``, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.turn_parameters(), *found[own:]]


def _split(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(filter(None, (each.strip() for each in value.split(","))))


@click.command(
    cls=_TurnCommand, short_help="Let an agent work on a folder: files, todos, a subagent, the web, a shell."
)
@click.argument("words", nargs=-1, metavar="[TASK] [-]")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="The folder that it works in; made where it is missing. Default: work.",
)
@click.option("--web/--no-web", default=None, help="Let it fetch public pages, and search where [plugins.web] says.")
@click.option("--shell/--no-shell", default=None, help="Let it run commands in a sandbox that sees the folder alone.")
@click.option(
    "--approve",
    callback=_split,
    metavar="TOOL,...",
    help="Ask before these tools run, such as write_file,execute; none = ask about none. Default: execute.",
)
@click.pass_context
def deep(
    ctx: click.Context,
    /,
    *,
    words: tuple[str, ...],
    folder: str | None,
    web: bool | None,
    shell: bool | None,
    approve: tuple[str, ...] | None,
    **given: Any,
) -> int:
    """Let an agent do TASK in a folder, with todos, files and a subagent for pieces of the work.

    \b
    locus deep "Write a parser for the dates in notes.md, with tests." --dir ./work --shell
    locus deep "What changed in HTTP/3? Write report.md." --web
    locus deep "Fix the typing errors." --dir . --approve write_file,edit_file,execute
    locus deep --continue
    locus deep /undo

    It reads and writes the files of FOLDER and no others, without a question; before it changes an AGENTS.md or what is
    in .git, it asks. Before a command runs (--shell), it asks, unless --approve says otherwise: answer allow, reject
    (and why), edit (and how), or always. After it has read a page, provenance asks about targets that are not yours.
    The AGENTS.md of FOLDER, and those above it in the repository, tell it how work is done there.

    The TASK /undo takes back the last turn of the newest conversation of the current folder, or of --thread ID: files,
    todos and what was said are as before it. What commands and other tools did is not taken back. Where a file was
    changed since, nothing is; "/undo keep" leaves such files as they are, and takes back the rest.

    Ctrl-C ends the run at the next safe point, twice ends it at once. A run that was interrupted or killed goes on with
    --continue (the newest of the current folder) or --thread ID, without TASK; what it had done is not done again. With
    TASK, both take the next turn. The options above are remembered.

    Exit status: 0 the run ended; 1 it failed; 2 the command line, the configuration or a plugin is wrong;
    3 it waits for an answer; 130 Ctrl-C; 141 the reader of the output went away.
    """  # noqa: D301  click reads the character
    made = recipe.DeepRecipe(folder=folder, web=web, shell=shell, approve=approve)
    is_undo: bool = undo_task.is_undo(words)
    code: int = (undo_task.undo_turn if is_undo else cli.take_turn)(ctx, made, words, given)
    return code
