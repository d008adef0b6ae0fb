"""``locus submit``: hands a turn in, and leaves it to a worker."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from glob import escape
from typing import Any, Literal

import click

from locus import Agent
from locus.core.journal import Submitted
from locus.journal import JournalStore, pinned_queue
from locus_plugin_worker.commands.base import QueueCommand, as_json_option, cli, not_blank, open_queues, store_options
from locus_plugin_worker.commands.watching import watch_thread
from locus_plugin_worker.loading import load_agent

__all__ = ["submit"]


class _Span(click.ParamType[timedelta]):
    """A length of time."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The length: ``90s``, ``15min``, ``2h``, ``1d``.

        Raises:
            click.BadParameter: it is something else.
        """
        text = str(value).strip()
        unit = text.lstrip("0123456789.")
        seconds = {"s": 1, "min": 60, "h": 3600, "d": 86_400}.get(unit.strip())
        try:
            return timedelta(seconds=float(text.removesuffix(unit)) * (seconds or 0)) if seconds else self._fail(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a length of time; write 90s, 15min, 2h or 1d", param, ctx)

    @staticmethod
    def _fail(value: object) -> timedelta:
        raise ValueError(value)


@click.command(cls=QueueCommand, short_help="Hand a turn in for a worker to run; prints its thread.")
@click.argument("words", nargs=-1, metavar="[PROMPT] [-]")
@click.option(
    "-a", "--agent", "source", type=not_blank, required=True, metavar="MODULE:NAME", help="The agent, or FILE.py:NAME."
)
@click.option("--thread", "thread_id", type=not_blank, metavar="ID", help="Its thread; default: a new one.")
@click.option("--queue", type=not_blank, metavar="NAME", help="The queue; default: that of the agent.")
@click.option(
    "--priority", type=click.IntRange(0, 2), default=0, show_default=True, help="2 goes first, and 0 is not starved."
)
@click.option("--in", "delay", type=_Span(), metavar="SPAN", help="Run it so much later: 90s, 15min, 2h, 1d.")
@click.option(
    "--max-depth",
    type=click.IntRange(min=1),
    metavar="N",
    help="Refuse it where N runs wait in the queue; default: max_depth of [plugins.worker], else any number.",
)
@click.option("--pin", is_flag=True, help="Only workers with this version of the agent run it.")
@click.option("--watch", is_flag=True, help="Show what happens until the run ends, as `locus runs watch` does.")
@as_json_option
@click.pass_context
def submit(
    ctx: click.Context,
    *,
    words: tuple[str, ...],
    source: str,
    thread_id: str | None,
    queue: str | None,
    priority: Literal[0, 1, 2],
    delay: timedelta | None,
    max_depth: int | None,
    pin: bool,
    watch: bool,
    as_json: bool,
    checkpointer: str | None,
) -> int:
    """Hand PROMPT in for an agent: a worker runs it, now or when one is there. Prints the thread of the run.

    \b
    locus submit "Check the order." --agent shop:agent
    locus submit "Check the order." --agent shop:agent --thread order-17 --priority 2
    locus submit "Send the report." --agent shop:agent --in 2h
    locus worker shop:agent

    shop:agent is the variable agent of shop.py, or of the package shop: an Agent with a name=. Text of standard input
    follows PROMPT, or is the prompt. Threads and queues are kept where --checkpointer says, else where the agent keeps
    its threads, else in a file of yours, which several processes may share. A turn that was submitted survives what
    happens to this process and to workers. For a thread that is there it is the next turn: it follows what is under way
    and goes where the thread is queued.

    Exit status: 0 it is in the queue; 1 the store failed, or the queue is full; 2 the command line or the agent is
    wrong; with --watch that of the run.
    """  # noqa: D301  click reads the character
    if len(words) > 1 and (len(words) > 2 or words[1] != "-" or words[0] == "-"):
        wrong = f"expected one PROMPT, got {len(words)} words; put it in quotes: {shlex.quote(' '.join(words))}"
        raise click.UsageError(wrong, ctx)
    agent = load_agent(source)
    typed = [word for word in words if word != "-"]
    prompt = cli.read_prompt(typed[0] if typed else None, waits=len(typed) < len(words))
    if prompt is None or not prompt.strip():
        raise click.UsageError("Missing argument 'PROMPT': text, or - for standard input", ctx)
    not_before = None if delay is None else datetime.now(UTC) + delay
    with open_queues(ctx, checkpointer, writes=True, store=agent.runtime.store) as journals:
        keeps = agent.with_checkpointer(journals.store)
        made = journals.run(
            keeps.submit(
                prompt,
                thread_id=thread_id,
                queue=queue,
                priority=priority,
                not_before=not_before,
                max_depth=max_depth or cli.settings_of(ctx, "worker").max_depth,
                pin=pin,
            )
        )
        into = pinned_queue(agent.name or "", agent.version or "") if pin else queue or agent.name or ""
        if as_json:
            form = {"thread_id": made, "queue": into, "agent": agent.name, "priority": priority}
            cli.print_json(form, indent=None)
        else:
            cli.print_text(f"{made}\n")
        if watch:
            return watch_thread(journals, made, as_json=as_json)
        if not as_json:
            store = store_options(journals)
            cli.say(_describe_worker(source, agent, journals.run(_find_queue(journals.store, made, into)), store))
            cli.say(f"see it work: {shlex.join(['locus', 'runs', 'watch', made, *store])}")
    return 0


async def _find_queue(store: JournalStore, thread_id: str, own: str) -> str:
    """Where a thread is queued: where its first submitted turn went, which need not be where this one was to go."""
    bodies = (entry.body for entry in await store.read(thread_id))
    return next((body.queue for body in bodies if isinstance(body, Submitted) and body.queue), own)


def _describe_worker(source: str, agent: Agent[Any, Any], queue: str, store: Sequence[str]) -> str:
    """Which worker takes a run from a queue, and how it is started."""
    name, version = agent.name or "", agent.version or ""
    bound = pinned_queue(name, "")
    command = ["locus", "worker", source]
    if queue.startswith(bound) and queue != pinned_queue(name, version):
        # A worker gives back what another version is to run, also where it looks into that queue.
        needed = f" whose {name!r} has version {queue.removeprefix(bound)!r}"
    else:
        needed = ""
        if queue not in (name, pinned_queue(name, version)):
            command += ["--queue", escape(queue)]  # a worker takes the name for a pattern
    return f"a worker{needed} runs it: {shlex.join([*command, *store])}"
