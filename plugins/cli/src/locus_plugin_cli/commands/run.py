"""``locus run``: one agent, one prompt."""

from __future__ import annotations

import shlex

import click

from locus_plugin_cli.common_options import CommonOptions, common_options, json_events_option, quiet_option
from locus_plugin_cli.one_turn import Shown, resume_thread, run_turn
from locus_plugin_cli.options import AgentOptions, agent_options, answer_option
from locus_plugin_cli.prompt_input import read_prompt

__all__ = ["run"]


@click.command(short_help="Run an agent on a prompt.")
@click.argument("words", nargs=-1, metavar="[PROMPT] [-]")
@agent_options
@json_events_option
@quiet_option
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the open run of --thread, or the newest there is, instead of a new prompt.",
)
@answer_option
@common_options
@click.pass_context
def run(
    ctx: click.Context,
    *,
    words: tuple[str, ...],
    options: AgentOptions,
    as_json: bool,
    quiet: bool,
    resume: bool,
    answers: tuple[str, ...],
) -> int:
    """Run an agent on PROMPT and on what is piped in.

    \b
    locus run "Say hello."
    locus run "Summarise this." < report.txt
    git diff | locus run "Review this change."

    Text of standard input follows PROMPT, or is the prompt. A pipe that says nothing for 5 seconds is left out; with -
    it is waited for, and a terminal is read until Ctrl-D.

    Exit status: 0 the run ended; 1 it failed; 2 the command line, the configuration or a plugin is wrong;
    3 it waits for an answer; 130 Ctrl-C; 141 the reader of the output went away.
    """  # noqa: D301  click reads the character
    _check(ctx, words, options, as_json=as_json, quiet=quiet, resume=resume, answers=answers)
    given = ctx.ensure_object(CommonOptions)
    shown: Shown = "json" if as_json else "quiet" if quiet else "text"
    if resume:
        return resume_thread(given, options, shown, answers)
    typed = [word for word in words if word != "-"]
    prompt = read_prompt(typed[0] if typed else None, waits=len(typed) < len(words))
    if prompt is None:
        raise click.UsageError("Missing argument 'PROMPT': text, or - for standard input", ctx)
    return run_turn(given, options, shown, prompt)


def _check(
    ctx: click.Context,
    words: tuple[str, ...],
    options: AgentOptions,
    *,
    as_json: bool,
    quiet: bool,
    resume: bool,
    answers: tuple[str, ...],
) -> None:
    """Refuse options that contradict each other, before anything costs time."""
    wrong = ""
    if as_json and quiet:
        wrong = "--json and --quiet exclude each other"
    elif resume and words:
        wrong = "--resume takes no PROMPT; answer a question with --answer"
    elif len(words) > 1 and (len(words) > 2 or words[1] != "-" or words[0] == "-"):
        wrong = f"expected one PROMPT, got {len(words)} words; put it in quotes: {shlex.quote(' '.join(words))}"
    elif options.no_keep and (resume or options.checkpointer is not None):
        wrong = f"--no-keep excludes {'--resume' if resume else '--checkpointer'}"
    elif options.newest and (resume or options.thread is not None or options.no_keep):
        other = "--resume" if resume else "--thread" if options.thread is not None else "--no-keep"
        wrong = f"--continue excludes {other}"
    elif answers and not resume:
        wrong = "--answer goes with --resume"
    if wrong:
        raise click.UsageError(wrong, ctx)
