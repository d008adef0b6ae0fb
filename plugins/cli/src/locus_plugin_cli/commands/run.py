"""``locus run``: one agent, one prompt."""

from __future__ import annotations

import sys

import click

from locus.core.errors import InputError
from locus_plugin_cli.common_options import CommonOptions, common_options
from locus_plugin_cli.one_turn import Shown, resume_thread, run_turn
from locus_plugin_cli.options import AgentOptions, agent_options

__all__ = ["run"]


@click.command(short_help="Run an agent on a prompt.")
@click.argument("prompt", required=False)
@agent_options
@click.option("--json", "as_json", is_flag=True, help="One event a line as JSON, and nothing else on the output.")
@click.option("-q", "--quiet", is_flag=True, help="The final answer, and nothing else on the output.")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the open run of --thread, or the newest there is, instead of a new prompt.",
)
@click.option(
    "--answer",
    "answers",
    metavar="[ID=]TEXT",
    multiple=True,
    help="With --resume: the answer to the question that the run waits for; with ID= when several are open.",
)
@common_options
@click.pass_context
def run(
    ctx: click.Context,
    *,
    prompt: str | None,
    options: AgentOptions,
    as_json: bool,
    quiet: bool,
    resume: bool,
    answers: tuple[str, ...],
) -> int:
    """Run an agent on PROMPT; - reads it from standard input.

    Exit status: 0 the run ended; 1 it failed; 2 the command line, the configuration or a plugin is wrong;
    3 it waits for an answer; 130 Ctrl-C; 141 the reader of the output went away.
    """
    _check(ctx, prompt, options, as_json=as_json, quiet=quiet, resume=resume, answers=answers)
    given = ctx.ensure_object(CommonOptions)
    shown: Shown = "json" if as_json else "quiet" if quiet else "text"
    if prompt is None:
        return resume_thread(given, options, shown, answers)
    return run_turn(given, options, shown, _prompt(prompt))


def _check(
    ctx: click.Context,
    prompt: str | None,
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
    elif resume and prompt is not None:
        wrong = "--resume takes no PROMPT; answer a question with --answer"
    elif options.no_keep and (resume or options.checkpointer is not None):
        wrong = f"--no-keep excludes {'--resume' if resume else '--checkpointer'}"
    elif answers and not resume:
        wrong = "--answer goes with --resume"
    elif prompt is None and not resume:
        wrong = "Missing argument 'PROMPT': text, or - for standard input"
    if wrong:
        raise click.UsageError(wrong, ctx)


def _prompt(text: str) -> str:
    """The text of the prompt.

    Raises:
        InputError: standard input is no UTF-8 text.
    """
    if text != "-":
        return text
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(
            f"standard input is no UTF-8 text: byte 0x{data[e.start]:02x} at position {e.start}; convert it first"
        ) from None
