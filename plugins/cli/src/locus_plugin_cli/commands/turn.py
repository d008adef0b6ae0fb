"""`take_turn`: what a plugin's command does that runs an agent of its own as ``locus run`` does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
from attrs import evolve, frozen

from locus.core.state import AgentState
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.continuing import choose_thread
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.one_turn import Shown, resume_thread, run_turn
from locus_plugin_cli.options import AgentOptions
from locus_plugin_cli.project import Project
from locus_plugin_cli.prompt_input import read_prompt
from locus_plugin_cli.recipe import Recipe
from locus_plugin_cli.saved_options import restore_options
from locus_plugin_cli.thread_store import choose_store

#: What is about the output of a turn.
_SHOWN: Final = ("answers", "as_json", "quiet")

__all__ = ["OpenThread", "open_thread", "take_turn"]


@frozen
class OpenThread:
    """A thread of a recipe, with the store that it is in.

    Args:
        journals: the store.
        thread: its id.
        recipe: with what the thread remembers, as far as this user's command wrote it.
        state: of the thread.
    """

    journals: Journals
    thread: str
    recipe: Any
    state: AgentState


@contextmanager
def open_thread(ctx: click.Context, recipe: Recipe, given: Mapping[str, Any]) -> Iterator[OpenThread]:
    """The thread that ``--thread`` names, or the newest of the current folder.

    Args:
        ctx: the command's.
        recipe: of the command that the thread belongs to.
        given: the values of `turn_parameters`.

    Raises:
        ConfigError: no store is configured, or the thread belongs to another command.
        NothingToResume: there is no such thread.
    """
    made = {name: value for name, value in given.items() if name not in _SHOWN}
    options = AgentOptions(**made, recipe=recipe)
    options = evolve(options, newest=options.thread is None)
    common = ctx.ensure_object(CommonOptions)
    with Journals(choose_store(options.checkpointer, Project.of(common), needed=True, writes=False)) as journals:
        options = choose_thread(journals, options)
        thread = options.thread or ""
        state = journals.found(thread).state
        restored, _ = restore_options(state, options, common)
        yield OpenThread(journals, thread, restored.recipe, state)


def take_turn(ctx: click.Context, recipe: Recipe, words: Sequence[str], given: Mapping[str, Any]) -> int:
    """Take a turn with the agent of a recipe, or go on with an open run; gives the exit status.

    An open run goes on where a thread is named, by ``--thread`` or ``--continue``, and no prompt is typed.

    Args:
        ctx: the command's.
        recipe: how the agent is made.
        words: the prompt, as typed: at most one word, and ``-`` for standard input.
        given: the values of `turn_parameters`.

    Raises:
        click.UsageError: the options contradict each other.
        LocusError: see `Recipe.make`, and the run.
    """
    made = dict(given)
    answers: tuple[str, ...] = made.pop("answers")
    as_json, quiet = made.pop("as_json"), made.pop("quiet")
    options = AgentOptions(**made, recipe=recipe)
    goes_on = not words and (options.newest or options.thread is not None)
    wrong = ""
    if as_json and quiet:
        wrong = "--json and --quiet exclude each other"
    elif len(words) > 1 and (len(words) > 2 or words[1] != "-" or words[0] == "-"):
        wrong = f"expected one prompt, got {len(words)} words; put it in quotes: {shlex.quote(' '.join(words))}"
    elif options.no_keep and (options.newest or options.checkpointer is not None):
        wrong = f"--no-keep excludes {'--continue' if options.newest else '--checkpointer'}"
    elif options.newest and options.thread is not None:
        wrong = "--continue excludes --thread"
    elif answers and not goes_on:
        wrong = "--answer goes with --thread or --continue, and without a prompt"
    if wrong:
        raise click.UsageError(wrong, ctx)
    common = ctx.ensure_object(CommonOptions)
    shown: Shown = "json" if as_json else "quiet" if quiet else "text"
    if goes_on:
        return resume_thread(common, options, shown, answers)
    typed = [word for word in words if word != "-"]
    prompt = read_prompt(typed[0] if typed else None, waits=len(typed) < len(words))
    if prompt is None:
        raise click.UsageError("a prompt is missing: text, or - for standard input", ctx)
    return run_turn(common, options, shown, prompt)
