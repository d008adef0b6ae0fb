"""``locus runs cancel``, ``answer``, ``retry``: what reaches a run in another process, or one that no process has."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import click

from locus.core.errors import InterruptMismatch, NothingToResume
from locus.core.journal import Answered, Asked, Cancelled
from locus.journal import JournalHost, Signal
from locus_plugin_worker.commands.base import QueueCommand, cli, not_blank, open_queues, store_options
from locus_plugin_worker.commands.watching import words_to_answer
from locus_plugin_worker.states import RETRY, read_info, state_of

__all__ = ["answer", "cancel", "retry"]


@click.command(cls=QueueCommand, short_help="End a run at its next safe point.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@click.option("--reason", default="", metavar="TEXT", help="Kept with the run, as `Cancelled: TEXT`.")
@click.pass_context
def cancel(ctx: click.Context, *, thread_id: str, reason: str, checkpointer: str | None) -> int:
    """End the run of the thread ID at its next safe point, in whichever process it is.

    A run that no worker has now, because it is queued or waits for a person, is ended by the next worker that takes it.
    """
    with open_queues(ctx, checkpointer) as journals:
        host: JournalHost = journals.found(thread_id)
        if host.last is not None and host.open_node is None:
            raise NothingToResume(f"the run of {thread_id!r} has ended with {host.last.why or 'an answer'}")
        signal = Signal(body=Cancelled(run_id=host.run_id, reason=reason), id=f"cancel {uuid4().hex}")
        journals.run(journals.store.signal(thread_id, signal))
    cli.say(f"sent; `locus runs watch {cli.one_line(thread_id)}` shows how it ends")
    return 0


@click.command(cls=QueueCommand, short_help="Answer what a run asks.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@click.argument("answers", nargs=-1, required=True, metavar="[QUESTION=]TEXT...")
@click.pass_context
def answer(ctx: click.Context, *, thread_id: str, answers: tuple[str, ...], checkpointer: str | None) -> int:
    """Answer the question that the run of the thread ID waits for, so that a worker goes on with it.

    \b
    locus runs answer order-17 yes
    locus runs answer order-17 0/execute/0=yes 0/execute/1=no

    With several open questions each answer names its own; `locus runs show ID` lists them. What is not one of the
    answers to choose from is refused here, before anything is sent.
    """  # noqa: D301  click reads the character
    with open_queues(ctx, checkpointer) as journals:
        host: JournalHost = journals.found(thread_id)
        matched = _match(host, cli.read_added(cli.parse_answers(answers), host.open_questions))
        for question, said in matched.items():
            body = Answered(run_id=host.run_id, interrupt_id=question, answer=said)
            if not journals.run(
                journals.store.signal(thread_id, Signal(body=body, id=f"answer {host.run_id} {question}"))
            ):
                raise InterruptMismatch(f"question {question!r} of {thread_id!r} was answered before")
    cli.say(f"sent; a worker goes on with it, and `locus runs watch {cli.one_line(thread_id)}` shows it")
    return 0


def _match(host: JournalHost, given: Any) -> dict[str, Any]:
    """The answers by the questions that are open.

    Raises:
        InterruptMismatch: an answer fits none of them.
    """
    questions = host.open_questions
    if not questions:
        raise InterruptMismatch("the run asks nothing now")
    if isinstance(given, Mapping) and set(given) <= set(questions):
        matched = dict(given)
    elif len(questions) == 1:
        matched = {next(iter(questions)): given}
    else:
        listed = "; ".join(f"{i}: {each.question}" for i, each in questions.items())
        raise InterruptMismatch(f"{len(questions)} questions are open ({listed}); write QUESTION=TEXT for each answer")
    for question, said in matched.items():
        _check(questions[question], said)
    return matched


def _check(asked: Asked, said: Any) -> None:
    labels = [str(option) for option in asked.options]
    if labels and isinstance(said, str) and said not in labels:
        raise InterruptMismatch(f"{said!r} is not an answer to {asked.question!r}; choose one of {', '.join(labels)}")


@click.command(cls=QueueCommand, short_help="Have a run tried again that was set aside, or stopped by an error.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@click.pass_context
def retry(ctx: click.Context, *, thread_id: str, checkpointer: str | None) -> int:
    """Have a worker go on with the run of the thread ID, which was set aside or stopped by an error.

    What it has done is not done again. Mend the cause first: a run whose workers die again is set aside again. One
    that is queued, runs now, waits for an answer or has ended is refused, and nothing is written.
    """
    with open_queues(ctx, checkpointer) as journals:
        host: JournalHost = journals.found(thread_id)
        why_not = _refuse_retry(journals, host, thread_id)
        if why_not:
            raise NothingToResume(f"the run of {thread_id!r} {why_not}")
        journals.run(_reopen(journals.store, thread_id))
    cli.say(f"a worker goes on with it; `locus runs watch {cli.one_line(thread_id)}` shows it")
    return 0


def _refuse_retry(journals: Any, host: JournalHost, thread_id: str) -> str:
    """Why the run of a thread goes on without being tried again, or cannot go on at all; ``""`` where it can."""
    state = state_of(info := journals.run(read_info(journals.store, thread_id)))

    def command(name: str, *words: str) -> str:
        return f"`{shlex.join(['locus', 'runs', name, thread_id, *store_options(journals), *words])}`"

    if state == "queued":
        return f"is queued already; a worker runs it, and {command('watch')} shows it"
    if state == "running":
        return f"is at work now, at {cli.one_line(info.holder)}; {command('watch')} shows it"
    if state == "waiting":
        sent = {signal.body.interrupt_id for signal in _answers(journals, thread_id)}
        open_ones = [] if "" in sent else [each for name, each in host.open_questions.items() if name not in sent]
        if not open_ones:
            return f"was sent its answer already; a worker goes on with it, and {command('watch')} shows it"
        return f"waits for an answer; {command('answer', *words_to_answer(open_ones))} gives it"
    if host.last is not None and host.open_node is None:
        ended = f"has ended with {host.last.why or 'an answer'}, and nothing of it is open"
        return f"{ended}; `locus submit --thread {thread_id} PROMPT` takes the next turn"
    return ""


def _answers(journals: Any, thread_id: str) -> list[Any]:
    """The answers that were sent to a thread and that no worker has taken up yet."""
    return [each for each in journals.run(journals.store.signals(thread_id)) if isinstance(each.body, Answered)]


async def _reopen(store: Any, thread_id: str) -> None:
    """Write that another segment begins, which ends the count of the attempts that died, and offer the thread again."""
    host = await JournalHost.open(store, thread_id, "locus runs retry")
    try:
        await host.resume()
    finally:
        await host.release()
    await store.signal(thread_id, Signal(body=RETRY, id=f"retry {uuid4().hex}"))
