"""``locus worker``: runs what was submitted, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any

import click

from locus.plugins import load
from locus_plugin_worker.commands.base import QueueCommand, Seconds, as_json_option, cli, clock, not_blank, open_queues
from locus_plugin_worker.loading import load_agent
from locus_plugin_worker.notices import Notice
from locus_plugin_worker.worker import Worker

__all__ = ["worker"]

#: Kinds in a manifest's ``provides``: ``() -> (notice) -> None``, and ``(say) -> context manager`` around a command.
_NOTICES, _AROUND = "worker_notices", "command_session"

#: What serves ``--metrics``: ``(address) -> endpoint``, the option, and the package that has it.
_METRICS = ("worker_metrics", "--metrics", "locus-plugin-telemetry[prometheus]")

#: What a notice is called on a line.
_WORDS = {
    "started": "ready",
    "queue": "queue",
    "taken": "take",
    "done": "done",
    "back": "back",
    "lost": "lost",
    "error": "error",
    "draining": "leaving",
    "stopped": "left",
    "stuck": "stuck",
}


@click.command(cls=QueueCommand, short_help="Run what was submitted, until Ctrl-C or SIGTERM.")
@click.argument("sources", nargs=-1, required=True, metavar="MODULE:NAME...")
@click.option("--slots", type=click.IntRange(min=1), default=4, show_default=True, help="How many runs at once.")
@click.option(
    "--queue",
    "queues",
    type=not_blank,
    multiple=True,
    metavar="NAME",
    help="Another queue, or all of a pattern, such as 'tenant:*', in turn; repeatable.",
)
@click.option(
    "--drain",
    type=Seconds(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long runs may take to a safe point when the worker leaves; then they are cancelled.",
)
@click.option(
    "--stuck-after",
    type=Seconds(min=0, min_open=True),
    metavar="SECONDS",
    help="Give its runs to others when the event loop has not turned for so long; default: 10 lease times.",
)
@click.option(
    "--metrics",
    is_flag=False,
    flag_value="0",
    metavar="[HOST:PORT]",
    help="Serve /metrics for Prometheus and /healthz; default: a free port of this machine alone, which is printed.",
)
@click.option("--until-idle", is_flag=True, help="Leave when nothing is ready and nothing is under way.")
@as_json_option
@click.pass_context
def worker(
    ctx: click.Context,
    *,
    sources: tuple[str, ...],
    slots: int,
    queues: tuple[str, ...],
    drain: float,
    stuck_after: float | None,
    metrics: str | None,
    until_idle: bool,
    as_json: bool,
    checkpointer: str | None,
) -> int:
    """Run what was submitted for these agents, so many at once, until Ctrl-C or SIGTERM.

    \b
    locus worker shop:agent
    locus worker shop:agent billing:agent --slots 8
    locus worker shop:agent --queue 'tenant:*'
    locus worker shop:agent --metrics 127.0.0.1:9464

    Start as many as you like: each run is worked on by one of them. If one is killed, another goes on with its runs
    from where they are, and no tool with effect="once" runs twice. What runs, ends and goes back is one line each.

    Ctrl-C or SIGTERM: it takes no more, and each run goes to another worker at its next step. A second one leaves at
    once, and others get its runs when its lease is over. A container needs a grace period that is longer than --drain.

    Exit status: 0 it left; 1 the store failed; 2 the command line or an agent is wrong; 130 or 143 left at once.
    """  # noqa: D301  click reads the character
    agents = [load_agent(source) for source in dict.fromkeys(sources)]
    own = next((each.runtime.store for each in agents if each.runtime.store is not None), None)
    with open_queues(ctx, checkpointer, writes=True, store=own) as journals:
        listeners = [_print_json if as_json else _print_line, *_listeners(ctx, journals)]
        endpoint = None if metrics is None else cli.load_provided(ctx, *_METRICS)(metrics)
        if endpoint is not None:
            listeners.append(endpoint.on_notice)

        def tell(notice: Notice) -> None:
            for listener in listeners:
                listener(notice)

        made = Worker(
            agents,
            journals.store,
            queues=queues,
            slots=slots,
            drain=drain,
            stuck_after=stuck_after,
            on_notice=tell,
            on_event=None if endpoint is None else endpoint.on_event,
        )
        if not as_json:
            cli.say(f"{made.name}: {slots} slots, in {journals.kept.name}; Ctrl-C leaves")
        journals.run(_work(made, endpoint, until_idle=until_idle))
    return 0


def _listeners(ctx: click.Context, journals: Any) -> list[Callable[[Notice], object]]:
    """What active plugins have for the notices of a worker: meters. Their sessions last as long as the command."""
    found = []
    for manifest in cli.active_plugins(ctx):
        name, provides = manifest.name, manifest.provides
        if _NOTICES in provides:
            if _AROUND in provides:
                journals.enter(name, partial(load(name, provides[_AROUND]), cli.say))
            found.append(load(name, provides[_NOTICES])())
    return found


async def _work(made: Worker, endpoint: Any, *, until_idle: bool) -> None:
    with _leaving_on_signals(made):
        async with AsyncExitStack() as around:
            if endpoint is not None:
                cli.say(f"metrics: {await around.enter_async_context(endpoint.serve(made))}")
            await made.run(until_idle=until_idle)


@contextmanager
def _leaving_on_signals(made: Worker) -> Iterator[None]:
    """Drain on the first SIGTERM or Ctrl-C, and leave at once on the second, also from a loop that does not turn."""
    loop = asyncio.get_running_loop()
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            os._exit(128 + number)
        loop.call_soon_threadsafe(made.drain)

    before: dict[int, Any] = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_json(notice: Notice) -> None:
    cli.print_json(notice.to_json(), indent=None)


def _print_line(notice: Notice) -> None:
    about = [notice.thread_id, f"in {notice.queue}" if notice.queue else ""]
    if notice.delivered > 1 and notice.kind == "taken":
        about.append(f"offered {notice.delivered} times")
    if notice.kind == "done":
        about.append(f"{notice.seconds:.1f} s")
    elif notice.kind == "back" and notice.seconds:
        about.append(f"again in {notice.seconds:g} s")
    mark = "failed: " if notice.is_failure and notice.kind == "done" else ""
    said = "  ".join(filter(None, (cli.one_line(" ".join(about)), mark + cli.one_line(notice.text))))
    cli.print_text(f"{clock(notice.at)}  {_WORDS[notice.kind]:<8}{said}\n")
