"""``locus threads replay``, ``diff``: whether the code does what the journal says, and where two threads part."""

from __future__ import annotations

from typing import Any

import attrs
import click

import locus_plugin_timetravel as timetravel
from locus.core import encode_data
from locus.core.errors import NotSerialisable
from locus.journal import History, read_history
from locus.schema import safe_repr
from locus_plugin_timetravel.commands.base import AgentCommand, ThreadCommand, as_json_option, cli, not_blank

__all__ = ["diff", "replay"]


@click.command(cls=AgentCommand, short_help="Run the code against a thread, without a model or a tool.")
@click.argument("thread_id", type=not_blank, metavar="ID")
@as_json_option
@click.pass_context
def replay(ctx: click.Context, /, *, thread_id: str, as_json: bool, checkpointer: str | None, **options: Any) -> int:
    """Run the code of today against what the thread ID has on record; asks no model, enters no tool, writes nothing.

    A thread of `locus run` or `locus chat` remembers its tools and other options; what is typed here wins.

    Exit status: 0 everything came out as recorded; 1 something did not, and the first difference is shown.
    """
    with cli.open_journals(ctx, checkpointer) as journals:
        agent = cli.make_agent(ctx, journals, thread_id, {"checkpointer": checkpointer, **options})
        found: timetravel.Replay = journals.run(timetravel.replay(agent, thread_id))
    first = found.difference
    if cli.wants_json(ctx, as_json=as_json):
        shown = None
        if first is not None:
            shown = {
                "n": first.n,
                "node": first.node,
                "step": first.step,
                "recorded": _data(first.recorded),
                "actual": _data(first.actual),
            }
        cli.print_json({"thread_id": thread_id, "same": found.ok, "checked": found.checked, "difference": shown})
    else:
        _print_replay(thread_id, found)
    return 0 if found.ok else 1


def _print_replay(thread_id: str, found: timetravel.Replay) -> None:
    count = f"{found.checked} transition{'' if found.checked == 1 else 's'}"
    cli.print_text(f"thread {cli.one_line(thread_id)}: {count} came out as recorded\n")
    first = found.difference
    if first is not None:
        cli.print_text(f"transition {first.n} ({first.node}) did not, in {cli.one_line(first.step)}\n")
        cli.print_text(f"  recorded: {cli.one_line(safe_repr(first.recorded, 1000))}\n")
        cli.print_text(f"  now:      {cli.one_line(safe_repr(first.actual, 1000))}\n")


@click.command(cls=ThreadCommand, short_help="Show two threads side by side, and where they part.")
@click.argument("thread_a", type=not_blank, metavar="A")
@click.argument("thread_b", type=not_blank, metavar="B")
@as_json_option
@click.pass_context
def diff(ctx: click.Context, *, thread_a: str, thread_b: str, as_json: bool, checkpointer: str | None) -> int:
    """Show the threads A and B side by side: what was said and done, without ids, times and durations.

    Exit status: 0 both said and did the same; 1 they did not.
    """
    with cli.open_journals(ctx, checkpointer) as journals:
        found = timetravel.diff(_past(journals, thread_a), _past(journals, thread_b))
    if cli.wants_json(ctx, as_json=as_json):
        rows = [{"same": row.same, "a": _act(row.a), "b": _act(row.b)} for row in found.rows]
        cli.print_json({"a": thread_a, "b": thread_b, "same": found.same, "rows": rows})
    else:
        cli.print_text(f"{found}\n")
    return 0 if found.same else 1


def _past(journals: Any, thread_id: str) -> History:
    journals.found(thread_id)
    past: History = journals.run(read_history(journals.store, thread_id))
    return past


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
