"""``locus run``: one agent, one prompt."""

from __future__ import annotations

import sys

import click

from locus.core.errors import InputError
from locus_plugin_cli import status
from locus_plugin_cli.conversation import Conversation, Turn
from locus_plugin_cli.failures import show_trace, why
from locus_plugin_cli.given import Given, common_options
from locus_plugin_cli.options import AgentOptions, agent_options
from locus_plugin_cli.output import say
from locus_plugin_cli.person import answers_of
from locus_plugin_cli.project import Project
from locus_plugin_cli.session import Session
from locus_plugin_cli.stopper import putting_away
from locus_plugin_cli.text import one_line, shortened
from locus_plugin_cli.view.base import JsonView, QuietView, View
from locus_plugin_cli.view.text import TextView

__all__ = ["run"]


@click.command(short_help="Run an agent on a prompt.")
@click.argument("prompt", required=False)
@agent_options
@click.option("--json", "as_json", is_flag=True, help="One event a line as JSON, and nothing else on the output.")
@click.option("-q", "--quiet", is_flag=True, help="The final answer, and nothing else on the output.")
@click.option("--resume", is_flag=True, help="Go on with the open run of --thread, instead of a new prompt.")
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
    3 it waits for an answer; 130 Ctrl-C; 141 whoever read the output went away.
    """
    _check(ctx, prompt, options, as_json=as_json, quiet=quiet, resume=resume, answers=answers)
    given = ctx.ensure_object(Given)
    text = None if prompt is None else _prompt(prompt)
    answer = answers_of(answers)
    session = Session.open(options, Project.of(given))
    view: View = JsonView(sys.stdout) if as_json else QuietView(sys.stdout) if quiet else TextView(sys.stdout)
    with Conversation(session, view, asks=not as_json and not quiet) as conversation:
        turn = conversation.say(text) if text is not None else conversation.resume(answer)
        with putting_away():
            _conclude(turn, session, debug=given.debug, shown=not as_json and not quiet)
    return turn.status


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
    elif resume and (options.thread is None or options.checkpointer is None):
        wrong = "--resume needs --thread and --checkpointer: where the open run is kept"
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


def _conclude(turn: Turn, session: Session, *, debug: bool, shown: bool) -> None:
    """Say on standard error what the view did not: what went wrong, what was done, how to go on."""
    result = turn.result
    if turn.stopped or result is None:
        say(f"stopped by Ctrl-C after {turn.tally.sentence()}")
        if result is not None and result.interrupts:
            _waiting(turn, session)
        elif session.kept:
            # A run that ended at a safe point is over; one that was left in the middle is still open.
            say(f"go on with: {session.command('--resume' if result is None else 'PROMPT')}")
    elif result.failed:
        if debug:
            show_trace(result.error)
        say(f"the run failed: {why(result)}")
    elif result.interrupts:
        _waiting(turn, session)
    elif turn.status == status.FAILED:
        say(f"the run was ended: {one_line(result.stop_reason)}")
    elif session.options.thread is not None and not session.kept and shown:
        say(f"the conversation {session.thread!r} ends with this command; --checkpointer keeps it")


def _waiting(turn: Turn, session: Session) -> None:
    assert turn.result is not None
    questions = turn.result.interrupts
    for question in questions:
        choice = f" [{' | '.join(question.options)}]" if question.options else ""
        say(f"asks ({question.interrupt_id}): {shortened(question.question)}{choice}")
    if session.kept:
        answers = [f"{q.interrupt_id}=ANSWER" for q in questions] if len(questions) > 1 else ["ANSWER"]
        words = [word for answer in answers for word in ("--answer", answer)]
        say(f"answer with: {session.command('--resume', *words)}")
    else:
        say("nobody can answer here: run it in a terminal, or keep it with --thread and --checkpointer")
