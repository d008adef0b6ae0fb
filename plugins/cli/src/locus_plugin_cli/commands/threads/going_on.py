"""``locus threads resume``, ``fork``: going on with a thread, or going another way from a point of it."""

from __future__ import annotations

import shlex
import sys

import click
from attrs import evolve

from locus_plugin_cli import status
from locus_plugin_cli.commands.threads.base import as_json_option, journals_of, threads, wants_json, with_store
from locus_plugin_cli.common_options import CommonOptions, common_options
from locus_plugin_cli.lazy import resolve
from locus_plugin_cli.one_turn import Shown, resume_thread
from locus_plugin_cli.options import AgentOptions, checkpointer_option, resuming_options
from locus_plugin_cli.output import Output, print_json, say
from locus_plugin_cli.parameter_types import NOT_BLANK

__all__ = ["fork", "resume"]


@threads.command(short_help="Go on with the open run of a thread.")
@click.argument("thread_id", type=NOT_BLANK, metavar="ID")
@click.option(
    "--answer",
    "answers",
    metavar="[ID=]TEXT",
    multiple=True,
    help="The answer to the question that the run waits for; with ID= when several are open.",
)
@resuming_options
@click.option("--json", "as_json", is_flag=True, help="One event a line as JSON, and nothing else on the output.")
@click.option("-q", "--quiet", is_flag=True, help="The final answer, and nothing else on the output.")
@common_options
@click.pass_context
def resume(
    ctx: click.Context, *, thread_id: str, answers: tuple[str, ...], options: AgentOptions, as_json: bool, quiet: bool
) -> int:
    """Go on with the open run of the thread ID, after a crash, Ctrl-C or a question.

    A thread of `locus run` or `locus chat` remembers its model, tools and other options; what is typed here wins.
    What the run has done is not done again. The exit status is that of `locus run`.
    """
    as_json = wants_json(ctx, as_json=as_json)
    if as_json and quiet:
        raise click.UsageError("--json and --quiet exclude each other", ctx)
    shown: Shown = "json" if as_json else "quiet" if quiet else "text"
    chosen = evolve(with_store(ctx, options), thread=thread_id)
    return resume_thread(ctx.ensure_object(CommonOptions), chosen, shown, answers)


@threads.command(short_help="Make another thread out of the beginning of one.")
@click.argument("thread_id", type=NOT_BLANK, metavar="ID")
@click.option(
    "--at", type=click.IntRange(min=1), metavar="N", help="The last transition that both have; default: the newest."
)
@click.option(
    "--into",
    type=NOT_BLANK,
    metavar="NAME",
    help="The new thread's id; default: the old one with a few letters behind it.",
)
@as_json_option
@checkpointer_option
@common_options
@click.pass_context
def fork(
    ctx: click.Context, *, thread_id: str, at: int | None, into: str | None, as_json: bool, checkpointer: str | None
) -> int:
    """Make another thread that begins like the thread ID, up to the transition N; prints its id.

    `locus threads show ID` numbers the transitions. The thread ID stays as it is.
    """
    with journals_of(ctx, checkpointer) as journals:
        journals.found(thread_id)
        made = journals.run(resolve("locus.timetravel:fork")(journals.store, thread_id, at=at, into=into))
        is_open = journals.found(made).open_node is not None
        store = () if journals.kept.text is None else ("--checkpointer", journals.kept.text)
    if wants_json(ctx, as_json=as_json):
        print_json({"thread_id": made, "resumable": is_open})
        return status.OK
    Output(sys.stdout).piece(f"{made}\n")
    words = ["threads", "resume", made, *store] if is_open else ["run", "--thread", made, *store, "PROMPT"]
    say(f"go on with: {shlex.join(['locus', *words])}")
    return status.OK
