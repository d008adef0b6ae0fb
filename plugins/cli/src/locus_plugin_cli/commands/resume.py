"""``locus resume``: go on with one run, or with all whose worker is gone."""

from __future__ import annotations

from collections.abc import Iterator

import click
from attrs import evolve

from locus.core.errors import LocusError, NothingToResume, ThreadBusy
from locus.journal import ThreadInfo, ThreadQuery
from locus.journal.listing import parent_thread
from locus_plugin_cli import status
from locus_plugin_cli.common_options import CommonOptions, common_options
from locus_plugin_cli.conversation import Conversation, Turn
from locus_plugin_cli.failures import explain_error, explain_result, show_trace
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.one_turn import resume_thread
from locus_plugin_cli.options import AgentOptions, resuming_options
from locus_plugin_cli.output import Output, say
from locus_plugin_cli.overview import list_threads
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.project import Project
from locus_plugin_cli.recipe import AGENT
from locus_plugin_cli.saved_options import restore_options
from locus_plugin_cli.session import Session
from locus_plugin_cli.text import one_line, shorten
from locus_plugin_cli.thread_store import choose_store
from locus_plugin_cli.view.base import SilentView
from locus_plugin_cli.view.tally import count_of

__all__ = ["resume"]

#: After how many attempts that died in one place a run is set aside.
_MAX_ATTEMPTS = 5


@click.command(short_help="Go on with a run that stopped in the middle, or with all of them.")
@click.argument("thread_id", type=NOT_BLANK, required=False, metavar="[ID]")
@click.option("--all", "every", is_flag=True, help="Every run whose process is gone, one after another.")
@resuming_options
@common_options
@click.pass_context
def resume(ctx: click.Context, *, thread_id: str | None, every: bool, options: AgentOptions) -> int:
    """Go on with the open run of the thread ID, or with --all runs whose process was killed or lost its power.

    What a run has done is not done again. Each goes on with the model, tools and options that it was begun with;
    what is typed here wins. With --all, a run that waits for an answer, was cancelled, or ended with an error is left
    alone, and so is one that another process holds, or that a program of yours began and not this command. A run that
    died five times in one place is set aside. Prints one line for each run: its thread, and what became of it. Run
    it after a restart of the machine.

    Exit status: 0 every run ended, or none was open; 1 one failed or could not be resumed; 2 the command line or
    the configuration is wrong; 3 none failed, and one waits for an answer; 130 Ctrl-C, and the rest was left.
    """
    given = ctx.ensure_object(CommonOptions)
    if every == (thread_id is not None):
        raise click.UsageError("name the ID of one thread, or --all", ctx)
    if not every:
        return resume_thread(given, evolve(options, thread=thread_id), "text", ())
    with Journals(choose_store(options.checkpointer, Project.of(given), needed=True, writes=False)) as journals:
        journals.insist()
        return _resume_all(journals, options, given)


def _resume_all(journals: Journals, options: AgentOptions, given: CommonOptions) -> int:
    crashed = journals.run(list_threads(journals.store, ThreadQuery(status=("crashed",))))
    parents = [info for info in crashed if parent_thread(info.thread_id) is None]
    runs = [info for info in parents if info.agent_id == AGENT]
    if others := len(parents) - len(runs):
        say(f"{count_of(others, 'run')} of other programs left to them: `agent.threads.recover()` resumes those")
    if not runs:
        say(f"no run in {one_line(journals.kept.name)} stopped in the middle")
    codes: list[int] = []
    for code in _each(journals, runs, options, given):
        codes.append(code)
        if code == status.STOPPED:
            left = len(runs) - len(codes)
            say(f"stopped by Ctrl-C; {count_of(left, 'other run')} left")
            return status.STOPPED
    return next((code for code in (status.FAILED, status.WAITING) if code in codes), status.OK)


def _each(journals: Journals, runs: list[ThreadInfo], options: AgentOptions, given: CommonOptions) -> Iterator[int]:
    """Resume one after another; gives what each would have as its exit status."""
    out = Output()
    for number, info in enumerate(runs, 1):
        title = f": {shorten(info.title)}" if info.title else ""
        say(f"{number} of {len(runs)}, thread {one_line(info.thread_id)}{title}")
        try:
            turn = _resumed(journals, info.thread_id, options, given)
        except (ThreadBusy, NothingToResume):
            code, text = status.OK, "left to another process, which was faster"
        except LocusError as e:
            if given.debug:
                show_trace(e)
            code, text = status.FAILED, f"cannot be resumed: {explain_error(e)[1]}"
        else:
            code, text = turn.status, _outcome(turn)
        out.piece(f"{one_line(info.thread_id)}\t{one_line(text)}\n")
        yield code


def _resumed(journals: Journals, thread: str, options: AgentOptions, given: CommonOptions) -> Turn:
    host = journals.found(thread)
    chosen, project = restore_options(host.state, evolve(options, thread=thread), given)
    conversation = Conversation(Session.open(chosen, project, journals), SilentView(), asks=False)
    return conversation.resume(max_attempts=_MAX_ATTEMPTS)


def _outcome(turn: Turn) -> str:
    result = turn.result
    if turn.stopped or result is None:
        return "stopped by Ctrl-C"
    if result.failed:
        return f"failed: {explain_result(result)}"
    if result.interrupts:
        return f"waits for an answer: {'; '.join(question.question for question in result.interrupts)}"
    return f"ended: {result.stop_reason}"
