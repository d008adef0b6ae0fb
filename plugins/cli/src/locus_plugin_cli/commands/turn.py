"""`take_turn`: what a plugin's command does that runs an agent of its own as ``locus run`` does."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.one_turn import Shown, resume_thread, run_turn
from locus_plugin_cli.options import AgentOptions
from locus_plugin_cli.prompt_input import read_prompt
from locus_plugin_cli.recipe import Recipe

__all__ = ["take_turn"]


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
