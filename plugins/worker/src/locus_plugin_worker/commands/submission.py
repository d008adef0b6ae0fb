"""``locus submit``: hands a turn in, and leaves it to a worker."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import click

from locus.journal import pinned_queue
from locus_plugin_worker.commands.base import QueueCommand, as_json_option, cli, not_blank, open_queues
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
        if as_json:
            into = pinned_queue(agent.name or "", agent.version or "") if pin else queue or agent.name
            form = {"thread_id": made, "queue": into, "agent": agent.name, "priority": priority}
            cli.print_json(form, indent=None)
        else:
            cli.print_text(f"{made}\n")
        if watch:
            return watch_thread(journals, made, as_json=as_json)
        if not as_json:
            store = () if journals.kept.text is None else ("--checkpointer", journals.kept.text)
            cli.say(f"a worker runs it: {shlex.join(['locus', 'worker', source, *store])}")
            cli.say(f"see it work: {shlex.join(['locus', 'runs', 'watch', made, *store])}")
    return 0
