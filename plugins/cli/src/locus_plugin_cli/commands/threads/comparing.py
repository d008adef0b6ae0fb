"""``locus threads replay``, ``diff``: whether the code does what the journal says, and where two threads part."""

from __future__ import annotations

import sys
from typing import Any

import attrs
import click
from attrs import evolve

from locus.core import encode_data
from locus.core.errors import NotSerialisable
from locus.journal import History, read_history
from locus.schema import safe_repr
from locus_plugin_cli import status
from locus_plugin_cli.commands.threads.base import as_json_option, journals_of, threads, wants_json, with_store
from locus_plugin_cli.common_options import CommonOptions, common_options
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.lazy import resolve
from locus_plugin_cli.options import AgentOptions, checkpointer_option, resuming_options
from locus_plugin_cli.output import Output, print_json
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.saved_options import restore_options
from locus_plugin_cli.session import Session
from locus_plugin_cli.text import one_line

__all__ = ["diff", "replay"]


@threads.command(short_help="Run the code against a thread, without a model or a tool.")
@click.argument("thread_id", type=NOT_BLANK, metavar="ID")
@resuming_options
@as_json_option
@common_options
@click.pass_context
def replay(ctx: click.Context, *, thread_id: str, options: AgentOptions, as_json: bool) -> int:
    """Run the code of today against what the thread ID has on record; asks no model, enters no tool, writes nothing.

    A thread of `locus run` or `locus chat` remembers its tools and other options; what is typed here wins.

    Exit status: 0 everything came out as recorded; 1 something did not, and the first difference is shown.
    """
    options = evolve(with_store(ctx, options), thread=thread_id)
    with journals_of(ctx, options.checkpointer) as journals:
        begun, project = restore_options(journals.found(thread_id).state, options, ctx.ensure_object(CommonOptions))
        agent = Session.open(begun, project, journals).agent()
        found = journals.run(resolve("locus.timetravel:replay")(agent, thread_id))
    first = found.difference
    if wants_json(ctx, as_json=as_json):
        told = None
        if first is not None:
            told = {
                "n": first.n,
                "node": first.node,
                "step": first.step,
                "recorded": _data(first.recorded),
                "actual": _data(first.actual),
            }
        print_json({"thread_id": thread_id, "same": found.ok, "checked": found.checked, "difference": told})
    else:
        _print_replay(thread_id, found, Output(sys.stdout))
    return status.OK if found.ok else status.FAILED


def _print_replay(thread_id: str, found: Any, out: Output) -> None:
    count = f"{found.checked} transition{'' if found.checked == 1 else 's'}"
    out.piece(f"thread {one_line(thread_id)}: {count} came out as recorded\n")
    first = found.difference
    if first is not None:
        out.piece(f"transition {first.n} ({first.node}) did not, in {one_line(first.step)}\n")
        out.piece(f"  recorded: {one_line(safe_repr(first.recorded, 1000))}\n")
        out.piece(f"  now:      {one_line(safe_repr(first.actual, 1000))}\n")


@threads.command(short_help="Show two threads side by side, and where they part.")
@click.argument("thread_a", type=NOT_BLANK, metavar="A")
@click.argument("thread_b", type=NOT_BLANK, metavar="B")
@as_json_option
@checkpointer_option
@common_options
@click.pass_context
def diff(ctx: click.Context, *, thread_a: str, thread_b: str, as_json: bool, checkpointer: str | None) -> int:
    """Show the threads A and B side by side: what was said and done, without ids, times and durations.

    Exit status: 0 both said and did the same; 1 they did not.
    """
    with journals_of(ctx, checkpointer) as journals:
        found = resolve("locus.timetravel:diff")(_past(journals, thread_a), _past(journals, thread_b))
    if wants_json(ctx, as_json=as_json):
        rows = [{"same": row.same, "a": _act(row.a), "b": _act(row.b)} for row in found.rows]
        print_json({"a": thread_a, "b": thread_b, "same": found.same, "rows": rows})
    else:
        Output(sys.stdout).piece(f"{found}\n")
    return status.OK if found.same else status.FAILED


def _past(journals: Journals, thread_id: str) -> History:
    journals.found(thread_id)
    return journals.run(read_history(journals.store, thread_id))


def _act(act: Any) -> dict[str, Any] | None:
    if act is None:
        return None
    return {
        "n": act.n,
        "node": act.node,
        "next_node": act.next_node,
        "said": list(act.said),
        "asked": list(act.asked),
        "calls": [{"call": call, "came_to": came} for call, came in act.calls],
        "why": act.why,
        "total_tokens": act.usage.total_tokens,
        "cost": act.usage.cost,
    }


def _data(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_data(each) for each in value]
    if attrs.has(type(value)):
        return repr(value)
    try:
        return encode_data(value)
    except NotSerialisable:
        return repr(value)
