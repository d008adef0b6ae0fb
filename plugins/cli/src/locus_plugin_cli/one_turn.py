"""One turn as a command: a new prompt, or an open run that goes on; what it shows, and what it says in the end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from attrs import evolve

from locus.core.errors import NothingToResume
from locus.journal import JournalHost
from locus_kit.calls import show_call
from locus_plugin_cli import status
from locus_plugin_cli.approval_prompt import parse_answers, read_added
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.continuing import choose_thread, take_up
from locus_plugin_cli.conversation import Conversation, Turn
from locus_plugin_cli.failures import explain_result, show_trace
from locus_plugin_cli.interrupted_threads import mention_interrupted
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.options import AgentOptions
from locus_plugin_cli.output import say
from locus_plugin_cli.overview import find_resumable
from locus_plugin_cli.pending_calls import calls_of_questions, confirm_imported
from locus_plugin_cli.project import Project
from locus_plugin_cli.saved_options import restore_options
from locus_plugin_cli.session import Session
from locus_plugin_cli.stopper import ignoring_one_interrupt
from locus_plugin_cli.text import one_line, shorten
from locus_plugin_cli.thread_store import StoreChoice, choose_store
from locus_plugin_cli.view.base import JsonView, QuietView, View
from locus_plugin_cli.view.text import TextView

__all__ = ["Shown", "open_journals", "resume_thread", "run_turn"]

#: What goes to the output: the live view, events as JSON, or the answer alone.
Shown = Literal["text", "json", "quiet"]


def open_journals(options: AgentOptions, project: Project) -> Journals:
    """Where a command that begins turns keeps them.

    Raises:
        ConfigError, PluginError: the store that was asked for cannot be made.
    """
    journals = Journals(choose_store(options.checkpointer, project, keep=not options.no_keep))
    if options.thread is not None or options.newest:
        # Without what was said before, a turn of it would be another one.
        journals.insist()
    return journals


def run_turn(given: CommonOptions, options: AgentOptions, shown: Shown, prompt: str) -> int:
    """Run an agent on a prompt; gives the exit status.

    Args:
        given: the common options.
        options: what makes the agent.
        shown: what goes to the output.
        prompt: the user's turn.
    """
    project = Project.of(given)
    with open_journals(options, project) as journals:
        if shown == "text":
            mention_interrupted(journals, options.thread, options.recipe)
        chosen, project, _ = take_up(journals, choose_thread(journals, options), given, project)
        conversation = _conversation(Session.open(chosen, project, journals), shown)
        return _concluded(conversation, conversation.say(prompt), given, shown)


def resume_thread(given: CommonOptions, options: AgentOptions, shown: Shown, answers: Sequence[str]) -> int:
    """Go on with the open run of a thread, with the options that it was begun with where none are typed.

    Args:
        given: the common options.
        options: what makes the agent; without a thread the newest that can be resumed goes on.
        shown: what goes to the output.
        answers: as typed, see `parse_answers`.

    Returns:
        The exit status.
    """
    answer = parse_answers(answers)
    with Journals(choose_store(options.checkpointer, Project.of(given), needed=True, writes=False)) as journals:
        options = choose_thread(journals, options)
        thread = options.thread
        if thread is None:
            thread = journals.run(find_resumable(journals.store, answered=answer is not None))
            if thread is None:
                raise NothingToResume(f"no thread in {journals.kept.name} can be resumed; `locus threads` lists them")
            say(f"going on with thread {thread}")
        journals.insist()
        host = journals.found(thread)
        if host.open_node is None:
            raise NothingToResume(_over(host, thread, journals.kept, options.recipe.command))
        if not confirm_imported(host, thread):
            say("nothing was run; `locus threads delete` forgets the thread")
            return status.FAILED
        options, project = restore_options(host.state, evolve(options, thread=thread), given)
        conversation = _conversation(Session.open(options, project, journals), shown)
        return _concluded(conversation, conversation.resume(read_added(answer, host.open_questions)), given, shown)


def _over(host: JournalHost, thread: str, kept: StoreChoice, command: str) -> str:
    state = "is empty" if host.last is None else f"ended with {host.last.why or 'an answer'}"
    store = () if kept.text is None else ("--checkpointer", kept.text)
    words = shlex.join(["locus", command, "--thread", thread, *store, "PROMPT"])
    return f"thread {thread!r} {state}: nothing of it is left to do; `{words}` takes the next turn"


def _conversation(session: Session, shown: Shown) -> Conversation:
    view: View
    if shown == "json":
        view = JsonView()
    else:
        view = QuietView() if shown == "quiet" else TextView()
    return Conversation(session, view, asks=shown == "text")


def _concluded(conversation: Conversation, turn: Turn, given: CommonOptions, shown: Shown) -> int:
    with ignoring_one_interrupt():
        _conclude(turn, conversation.session, debug=given.debug, shown=shown == "text")
    return turn.status


def _conclude(turn: Turn, session: Session, *, debug: bool, shown: bool) -> None:
    """Say on standard error what the view did not: what went wrong, what was done, how to go on."""
    result = turn.result
    if turn.stopped or result is None:
        say(f"stopped by Ctrl-C after {turn.tally.sentence()}")
        if result is not None and result.interrupts:
            _waiting(turn, session)
        elif session.kept:
            # A run that ended at a safe point is over; one that was left in the middle is still open.
            say(f"go on with: {session.resuming() if result is None else session.command('PROMPT')}")
    elif result.failed:
        if debug:
            show_trace(result.error)
        say(f"the run failed: {explain_result(result)}")
    elif result.interrupts:
        _waiting(turn, session)
    elif turn.status == status.FAILED:
        say(f"the run was ended: {one_line(result.stop_reason)}")
    elif session.options.thread is not None and not session.kept and shown:
        say(f"the conversation {session.thread!r} ends with this command; --checkpointer keeps it")


def _waiting(turn: Turn, session: Session) -> None:
    assert turn.result is not None
    questions = turn.result.interrupts
    calls = calls_of_questions(turn.result.state, questions)
    for question in questions:
        choice = f" [{' | '.join(map(str, question.options))}]" if question.options else ""
        say(f"asks ({question.interrupt_id}): {shorten(question.question)}{choice}")
        if question.interrupt_id in calls:
            say(f"about: {show_call(calls[question.interrupt_id])}")
    if session.kept:
        answers = [f"{q.interrupt_id}=ANSWER" for q in questions] if len(questions) > 1 else ["ANSWER"]
        words = [word for answer in answers for word in ("--answer", answer)]
        say(f"answer with: {session.resuming(*words)}")
    else:
        say("nobody can answer here: run it in a terminal, or keep it with --checkpointer")
