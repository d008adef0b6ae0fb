"""``locus threads resume``: going on with a thread."""

from __future__ import annotations

import click
from attrs import evolve

from locus_plugin_cli.commands.threads.base import threads, wants_json, with_store
from locus_plugin_cli.common_options import CommonOptions, common_options, json_events_option, quiet_option
from locus_plugin_cli.one_turn import Shown, resume_thread
from locus_plugin_cli.options import AgentOptions, resuming_options
from locus_plugin_cli.parameter_types import NOT_BLANK

__all__ = ["resume"]


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
@json_events_option
@quiet_option
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
