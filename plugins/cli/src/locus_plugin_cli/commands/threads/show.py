"""``locus threads show``: what happened on a thread, transition by transition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from locus.core import encode_data
from locus.core.errors import NotSerialisable
from locus.core.journal import FORK, START, Asked, Intent, Outcome, StepId
from locus.core.messages import Message, Role, Usage, text_of
from locus.journal import History, HistoryEntry, ThreadInfo, read_history
from locus_kit.calls import show_call
from locus_plugin_cli import status
from locus_plugin_cli.commands.threads.base import open_journals, threads, wants_json
from locus_plugin_cli.common_options import common_options, json_option
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.options import checkpointer_option
from locus_plugin_cli.output import Output, print_json, print_text
from locus_plugin_cli.overview import as_json as thread_as_json
from locus_plugin_cli.overview import describe_status, detail_of, list_threads
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.pending_calls import calls_of_questions
from locus_plugin_cli.text import (
    escape_controls,
    format_call,
    format_ms,
    format_time,
    format_tokens,
    one_line,
    shorten,
)
from locus_plugin_cli.view.tally import count_of

__all__ = ["show"]

_DIM, _CALL, _GOOD, _BAD = "dim", "cyan", "green", "bold red"


@threads.command(short_help="Show what happened on a thread.")
@click.argument("thread_id", type=NOT_BLANK, metavar="ID")
@click.option("--messages", is_flag=True, help="The conversation too, in full.")
@json_option
@checkpointer_option
@common_options
@click.pass_context
def show(ctx: click.Context, *, thread_id: str, messages: bool, as_json: bool, checkpointer: str | None) -> int:
    """Show what happened on the thread ID: its transitions, tool calls and open questions.

    The number in front of a transition is what `locus threads fork ID --at N` takes.
    """
    with open_journals(ctx, checkpointer) as journals:
        info = _info(journals, thread_id)
        past = journals.run(read_history(journals.store, thread_id))
        host = journals.found(thread_id)
        questions = tuple(host.open_questions.values())
        detail = detail_of(host, questions)
    if wants_json(ctx, as_json=as_json):
        print_json(_as_json(info, detail, questions, past, messages=messages))
        return status.OK
    calls = calls_of_questions(host.state, questions)
    _print(info, detail, questions, past, Output())
    for interrupt_id, call in calls.items():
        print_text(f"about ({one_line(interrupt_id)}): {show_call(call)}\n")
    if messages and len(past):
        _print_messages(past.state.messages, Output())
    return status.OK


def _info(journals: Journals, thread_id: str) -> ThreadInfo:
    for info in journals.run(list_threads(journals.store)):
        if info.thread_id == thread_id and info.head:
            return info
    raise journals.unknown(thread_id)


# -- for people -----------------------------------------------------------------------------------


def _print(info: ThreadInfo, detail: str, questions: Sequence[Asked], past: History, out: Output) -> None:
    runs = count_of(sum(m.node == START for m in past), "run")
    out.piece(f"thread {one_line(info.thread_id)}: {describe_status(info, detail)}\n")
    out.piece(f"{runs}, {count_of(len(past), 'transition')}, {format_tokens(past.usage)}\n")
    before: datetime | None = None
    for moment in past:
        _print_moment(moment, before, out)
        before = moment.at
    for intent in _under_way(past):
        out.piece(f"      left in the middle: {one_line(intent)}\n", _BAD)
    for question in questions:
        choice = f" [{' | '.join(map(str, question.options))}]" if question.options else ""
        out.piece(f"asks ({question.interrupt_id}): {shorten(question.question)}{escape_controls(choice)}\n")


def _print_moment(moment: HistoryEntry, before: datetime | None, out: Output) -> None:
    when = format_time(moment.at)
    if before is not None and moment.node not in (START, FORK):
        when = format_ms(max(0.0, (moment.at - before).total_seconds() * 1000))
    spent = f", {format_tokens(moment.usage)}" if moment.usage.total_tokens or moment.usage.cost else ""
    why = f" ({one_line(moment.why)})" if moment.why else ""
    out.piece(f"{moment.n:>4}  {moment.node} -> {moment.next_node}{why}{spent}, {when}\n", _DIM)
    for message in moment.messages:
        if message.role is not Role.TOOL and message.role is not Role.SYSTEM and message.text:
            out.piece(f"      {message.role.value}: {_indented(shorten(message.text))}\n")
        for call in message.tool_calls:
            out.piece(f"      -> {format_call(call.name, call.arguments)}\n", _CALL)
    for done in moment.calls:
        took = " (not run again)" if done.cache_hit else f" ({format_ms(done.duration_ms)})" if done.started else ""
        if done.error is not None:
            out.piece(f"      <- {one_line(done.tool_name)} failed{took}: {_indented(shorten(done.error))}\n", _BAD)
        else:
            text = _indented(shorten(done.result or ""))
            out.piece(f"      <- {one_line(done.tool_name)}{took}: {text}\n", _GOOD)
    for child in moment.children:
        out.piece(f"      child run: {one_line(child)}\n", _DIM)
    if moment.error:
        out.piece(f"      {one_line(moment.error)}\n", _BAD)


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")


def _under_way(past: History) -> list[str]:
    """What was begun in the node under way and did not come to its end."""
    ended = {b.step_id for b in past.pending if isinstance(b, Outcome)}
    left = [b.step_id for b in past.pending if isinstance(b, Intent) and b.step_id not in ended]
    calls = past.state.unanswered if left else ()
    named = {StepId(past.state.iteration, "execute", i): format_call(c.name, c.arguments) for i, c in enumerate(calls)}
    return [named.get(step, str(step)) for step in dict.fromkeys(left)]


def _print_messages(messages: tuple[Message, ...], out: Output) -> None:
    for message in messages:
        name = "".join(f" {r.name}" for r in message.tool_results if r.name)
        out.piece(f"\n{message.role.value}{one_line(name) and ' ' + one_line(name)}:\n", _CALL)
        if message.text:
            out.piece(message.text.rstrip("\n") + "\n")
        for call in message.tool_calls:
            out.piece(f"-> {format_call(call.name, call.arguments)}\n")
        for result in message.tool_results:
            out.piece(text_of(result.content).rstrip("\n") + "\n")


# -- for programs ---------------------------------------------------------------------------------


def _as_json(
    info: ThreadInfo, detail: str, questions: Sequence[Asked], past: History, *, messages: bool
) -> dict[str, Any]:
    form = {
        **thread_as_json(info),
        "detail": detail,
        "questions": [
            {"id": q.interrupt_id, "question": q.question, "options": [*map(str, q.options)]} for q in questions
        ],
        "iterations": sum(max(moment.iteration for moment in run) + 1 for run in past.runs),
        "usage": _usage(past.usage),
        "open_node": past.open_node,
        "left_in_the_middle": _under_way(past),
        "transitions": [_moment(moment) for moment in past],
    }
    if messages:
        form["messages"] = [_message(message) for message in (past.state.messages if len(past) else ())]
    return form


def _moment(moment: HistoryEntry) -> dict[str, Any]:
    return {
        "n": moment.n,
        "run_id": moment.run_id,
        "segment": moment.segment,
        "node": moment.node,
        "next_node": moment.next_node,
        "why": moment.why,
        "satisfied": list(moment.satisfied),
        "error": moment.error,
        "at": moment.at.isoformat(),
        "iteration": moment.iteration,
        "messages": [_message(message) for message in moment.messages],
        "calls": [
            {
                "tool_name": done.tool_name,
                "arguments": _data(done.arguments),
                "result": done.result,
                "error": done.error,
                "duration_ms": done.duration_ms,
                "cache_hit": done.cache_hit,
            }
            for done in moment.calls
        ],
        "children": list(moment.children),
        "usage": _usage(moment.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "total_tokens": usage.total_tokens,
        "cost": usage.cost,
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "text": message.text,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": _data(call.arguments)} for call in message.tool_calls
        ],
        "tool_results": [
            {"id": r.call_id, "name": r.name, "text": text_of(r.content), "is_error": r.is_error}
            for r in message.tool_results
        ],
    }


def _data(value: Any) -> Any:
    try:
        return encode_data(value)
    except NotSerialisable:
        return repr(value)
