"""``locus workflow start``, ``work``, ``show``, ``retry`` and ``cancel``."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from locus.core import decode_data
from locus.core.errors import InputError, NotSerialisable
from locus.plugin import Lazy
from locus_plugin_workflow import client
from locus_plugin_workflow.client import check_store
from locus_plugin_workflow.commands.printing import print_event, print_event_json, print_run, run_to_json
from locus_plugin_workflow.commands.programs import load_workflow
from locus_plugin_workflow.dispatches import DispatchNotice
from locus_plugin_workflow.worker import Worker

__all__ = ["workflow"]

#: What serves ``--metrics``: ``(address) -> endpoint``, the option, and the package that has it.
_METRICS = ("worker_metrics", "--metrics", "locus-plugin-telemetry[prometheus]")

#: The command line is another distribution, which is there when a command is called.
cli: Any = Lazy("locus.cli")


def _claim_output(ctx: click.Context, param: click.Parameter, value: object) -> object:
    return cli.claim_output(ctx, param, value)


def _refuse_blank(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.BadParameter("it is empty; leave the option out, or give it a value", ctx, param)
    return value


_as_json: Callable[[Callable[..., int]], Callable[..., int]] = click.option(
    "--json", "as_json", is_flag=True, callback=_claim_output, help="As JSON."
)


class StoreCommand(click.Command):
    """A command with ``--checkpointer``, which its function gets, and the options that every command has."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with other commands, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.thread_parameters(), *found[own:]]


@contextmanager
def _open_store(ctx: click.Context, checkpointer: str | None, *, writes: bool = False) -> Iterator[Any]:
    with cli.open_journals(ctx, checkpointer, writes=writes) as journals:
        check_store(journals.store)
        yield journals


workflow = click.Group("workflow", help="Start, work on, show, retry and cancel runs of workflows.")


@workflow.command(cls=StoreCommand, short_help="Start a run for workers to take; prints its id.")
@click.argument("source", metavar="MODULE:NAME")
@click.option("--input", "given", metavar="JSON|@FILE", default="null", help="The input of the first steps.")
@click.option(
    "--id",
    "run_id",
    metavar="ID",
    callback=_refuse_blank,
    help="The id of the run; started twice under one id, it is one run.",
)
@_as_json
@click.pass_context
def start(
    ctx: click.Context, *, source: str, given: str, run_id: str | None, as_json: bool, checkpointer: str | None
) -> int:
    """Start a run of a workflow of a program. Workers run it, now or when one is there.

    \b
    locus workflow start shop:review --input '{"pr": 17}'
    locus workflow start shop.py:review --input @pr.json --id pr-17
    locus workflow work shop:review

    shop:review is the variable review of shop.py, or of the package shop: a Workflow, or what its build() gave.
    """  # noqa: D301  click reads the character
    definition = load_workflow(source)
    value = _read_input(given)
    with _open_store(ctx, checkpointer, writes=True) as journals:
        try:
            made = journals.run(client.start(journals.store, definition, value, run_id=run_id))
        except NotSerialisable as e:  # a workflow that was built has a JSON form, so it is the input
            raise InputError(f"--input: {e}") from e
        if as_json:
            cli.print_json({"run_id": made, "workflow": definition.name}, indent=None)
            return 0
        cli.print_text(f"{made}\n")
        where = () if journals.kept.text is None else ("--checkpointer", journals.kept.text)
        cli.say(f"a worker runs it: {shlex.join(['locus', 'workflow', 'work', source, *where])}")
        cli.say(f"look at it: {shlex.join(['locus', 'workflow', 'show', made, *where])}")
    return 0


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not in JSON")  # Python reads it nevertheless


def _read_input(text: str) -> Any:
    try:
        if text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return decode_data(json.loads(text, parse_constant=_refuse_constant))
    except OSError as e:
        raise InputError(f"--input: cannot read the file: {e}") from e
    except NotSerialisable as e:
        raise InputError(f"--input: {e}") from e
    except (ValueError, RecursionError) as e:
        raise InputError(f"--input: expected JSON, or @FILE with JSON, got {text!r:.80}: {e}") from e


@workflow.command(cls=StoreCommand, short_help="Run steps of workflows, until Ctrl-C or SIGTERM.")
@click.argument("sources", nargs=-1, required=True, metavar="MODULE:NAME...")
@click.option("--slots", type=click.IntRange(min=1), default=4, show_default=True, help="How many dispatches at once.")
@click.option(
    "--stuck-after",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Give its steps to others when the event loop has not turned for so long; default: 10 lease times.",
)
@click.option(
    "--metrics",
    is_flag=False,
    flag_value="0",
    metavar="[HOST:PORT]",
    help="Serve /metrics for Prometheus and /healthz; default: a free port of this machine alone, which is printed.",
)
@click.option("--until-idle", is_flag=True, help="Leave when nothing is ready and nothing is under way.")
@_as_json
@click.pass_context
def work(
    ctx: click.Context,
    *,
    sources: tuple[str, ...],
    slots: int,
    stuck_after: float | None,
    metrics: str | None,
    until_idle: bool,
    as_json: bool,
    checkpointer: str | None,
) -> int:
    """Run the steps of these workflows with the handlers that their programs give them. Prints a line an event.

    Start as many as you like. Ctrl-C or SIGTERM: it takes no more, ends the iterations that are under way, and leaves;
    a second Ctrl-C gives them back at once.
    """
    definitions = [load_workflow(source) for source in dict.fromkeys(sources)]
    with _open_store(ctx, checkpointer, writes=True) as journals:
        endpoint = None if metrics is None else cli.load_provided(ctx, *_METRICS)(metrics)

        def hear(notice: DispatchNotice) -> None:
            if notice.kind == "stuck":
                cli.say(cli.one_line(notice.text))
            if endpoint is not None:
                endpoint.on_notice(notice)

        made = Worker(
            journals.store,
            definitions,
            slots=slots,
            hooks=[print_event_json if as_json else print_event],
            stuck_after=stuck_after,
            on_notice=hear,
            on_event=None if endpoint is None else endpoint.on_event,
        )
        if not as_json:
            cli.say(f"{made.name}: {slots} slots, in {journals.kept.name}; Ctrl-C leaves")
        journals.run(_work(made, endpoint, until_idle=until_idle))
    return 0


async def _work(made: Worker, endpoint: Any, *, until_idle: bool) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    heard: list[int] = []

    def leave() -> None:
        heard.append(1)
        if len(heard) > 1 and task is not None:
            task.cancel()
        made.drain()

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(leave)) for number in signals}
    try:
        async with AsyncExitStack() as around:
            if endpoint is not None:
                cli.say(f"metrics: {await around.enter_async_context(endpoint.serve(made))}")
            await made.run(until_idle=until_idle)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@workflow.command(cls=StoreCommand, short_help="Show a run and its steps.")
@click.argument("run_id", metavar="RUN")
@_as_json
@click.pass_context
def show(ctx: click.Context, *, run_id: str, as_json: bool, checkpointer: str | None) -> int:
    """Show a run of a workflow, and how each of its steps is.

    Exit status: 0 it is completed or goes on; 1 it has failed.
    """
    with _open_store(ctx, checkpointer) as journals:
        found = journals.run(client.show(journals.store, run_id))
    if as_json:
        cli.print_json(run_to_json(found))
    else:
        print_run(found)
    return int(found.status == "failed")


@workflow.command(cls=StoreCommand, short_help="Have a failed step begin again.")
@click.argument("run_id", metavar="RUN")
@click.argument("step", metavar="STEP")
@click.pass_context
def retry(ctx: click.Context, *, run_id: str, step: str, checkpointer: str | None) -> int:
    """Have the failed step of a run begin again where it failed, with its checkpoint; the run goes on.

    A step that a bound has ended gets that bound anew. A worker does it, now or when one is there.
    """
    with _open_store(ctx, checkpointer, writes=True) as journals:
        journals.run(client.retry(journals.store, run_id, step))
    cli.say(f"step {step!r} of {run_id} is begun again by the next worker")
    return 0


@workflow.command(cls=StoreCommand, short_help="Cancel a run.")
@click.argument("run_id", metavar="RUN")
@click.option("--reason", default="", metavar="TEXT", help="Why; recorded with each step.")
@click.pass_context
def cancel(ctx: click.Context, *, run_id: str, reason: str, checkpointer: str | None) -> int:
    """Have a run fail, and its steps that have not ended; one that is under way fails when its iteration is over."""
    with _open_store(ctx, checkpointer, writes=True) as journals:
        is_open = journals.run(client.cancel(journals.store, run_id, reason))
    cli.say(f"the next worker cancels {run_id}" if is_open else f"{run_id} has ended already")
    return 0
