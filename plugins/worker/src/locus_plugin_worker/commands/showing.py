"""``locus runs show`` and ``watch``: one run, as it is and as it goes on."""

from __future__ import annotations

import shlex
from collections import deque
from typing import Any

import click

from locus.core.journal import Answered, Cancelled, Submitted
from locus.journal import JournalHost, Signal, ThreadInfo
from locus_plugin_worker.commands.base import (
    QueueCommand,
    age,
    as_json_option,
    cli,
    not_blank,
    open_queues,
    store_options,
)
from locus_plugin_worker.commands.watching import show_moment, watch_thread, words_to_answer
from locus_plugin_worker.moments import Moment, read_moments
from locus_plugin_worker.states import RETRY, describe_state, read_info, read_submitted, state_of

__all__ = ["show", "watch"]

#: How many of the newest moments are shown.
_NEWEST = 12


@click.command(cls=QueueCommand, short_help="Show how a run is, and what can be done with it.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@as_json_option
@click.pass_context
def show(ctx: click.Context, *, thread_id: str, as_json: bool, checkpointer: str | None) -> int:
    """Show how the run of the thread ID is: its state, who holds it, what it did last, and what was sent to it.

    `locus threads show ID` has every transition and what it cost.
    """
    with open_queues(ctx, checkpointer) as journals:
        journals.found(thread_id)
        found = journals.run(_read(journals.store, thread_id))
        store = store_options(journals)
    if cli.wants_json(ctx, as_json=as_json):
        cli.print_json(found.to_json())
        return 0
    for line in found.lines():
        cli.print_text(f"{line}\n")
    hint = found.hint()
    if hint:
        cli.say(f"go on with: {shlex.join(['locus', 'runs', hint[0], thread_id, *store, *hint[1:]])}")
    return 0


class _Found:
    """What is known of a run."""

    def __init__(
        self,
        info: ThreadInfo,
        turn: Submitted | None,
        moments: tuple[Moment, ...],
        signals: tuple[Signal, ...],
        host: JournalHost,
    ) -> None:
        self.info, self.turn, self.moments, self.signals = info, turn, moments, signals
        self.questions = tuple(host.open_questions.values())
        self.state, self.due = state_of(info), host.due

    def lines(self) -> list[str]:
        """What a person reads."""
        info, turn = self.info, self.turn
        held = f", {cli.one_line(info.holder)} for {age(info.since)}" if info.holder else ""
        agent = info.agent_id or (turn.agent if turn is not None else "") or "-"
        lines = [f"run {cli.one_line(info.thread_id)}: {describe_state(self.state, self.due)}{held}"]
        where = f", queue {cli.one_line(turn.queue)}" if turn is not None and turn.queue else ""
        version = f" version {cli.one_line(turn.version)}" if turn is not None and turn.version else ""
        lines.append(f"agent {cli.one_line(agent)}{version}{where}, changed {age(info.updated_at)} ago")
        lines += [f"  {show_moment(moment)}" for moment in self.moments]
        lines += [f"sent and not taken up yet: {_describe(signal)}" for signal in self.signals]
        return lines

    def hint(self) -> tuple[str, ...]:
        """The words of the command that goes on with it, or nothing."""
        if self.state == "waiting":
            return ("answer", *words_to_answer(self.questions))
        if self.state in ("running", "queued", "crashed", "paused"):
            return ("watch",)
        return ("retry",) if self.state == "set-aside" else ()

    def to_json(self) -> dict[str, Any]:
        """What a program reads."""
        info, turn = self.info, self.turn
        return {
            "thread_id": info.thread_id,
            "state": self.state,
            "agent": info.agent_id or (turn.agent if turn is not None else ""),
            "queue": turn.queue if turn is not None else "",
            "not_before": None if self.due is None else self.due.isoformat(),
            "holder": info.holder,
            "since": None if info.since is None else info.since.isoformat(),
            "updated_at": None if info.updated_at is None else info.updated_at.isoformat(),
            "questions": [
                {"id": q.interrupt_id, "question": q.question, "options": [*map(str, q.options)]}
                for q in self.questions
            ],
            "signals": [_describe(signal) for signal in self.signals],
            "moments": [moment.to_json() for moment in self.moments],
        }


def _describe(signal: Signal) -> str:
    body = signal.body
    if body == RETRY:
        return "another try"
    if isinstance(body, Cancelled):
        return f"cancel{': ' if body.reason else ''}{cli.one_line(body.reason)}"
    if isinstance(body, Answered):
        return f"an answer: {cli.one_line(str(body.answer))}"
    return f"the next turn: {cli.one_line(body.prompt.text)}"


async def _read(store: Any, thread_id: str) -> _Found:
    info = await read_info(store, thread_id)
    moments: deque[Moment] = deque(maxlen=_NEWEST)
    for entry in await store.read(thread_id, max(0, info.head - 4 * _NEWEST)):
        moments.extend(read_moments(entry))
    host = await JournalHost.peek(store, thread_id)
    assert host is not None
    turn = await read_submitted(store, thread_id)
    return _Found(info, turn, tuple(moments), await store.signals(thread_id), host)


@click.command(cls=QueueCommand, short_help="Show what a run does, while another process works on it.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@as_json_option
@click.pass_context
def watch(ctx: click.Context, *, thread_id: str, as_json: bool, checkpointer: str | None) -> int:
    """Show what the run of the thread ID did, and what it does, until it ends or waits for a person.

    Watching does not disturb the run: it reads what the worker has written. If that worker is killed, you see the next
    one go on. Ctrl-C ends the watching and not the run.

    Exit status: 0 the run ended; 1 it failed, or was set aside; 3 it waits for an answer; 130 Ctrl-C.
    """
    with open_queues(ctx, checkpointer) as journals:
        journals.found(thread_id)
        return watch_thread(journals, thread_id, as_json=cli.wants_json(ctx, as_json=as_json))
