"""``locus view``: the threads of a store on a local web page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from locus.plugin import Lazy
from locus_plugin_viewer.loading import load_agent
from locus_plugin_viewer.serving import serve
from locus_plugin_viewer.viewer import Viewer

__all__ = ["view"]

#: The command line is another distribution, which is there when a command is called.
cli: Any = Lazy("locus.cli")
# It loads uvloop, which `--help` can do without.
event_loops: Any = Lazy("locus_kit.event_loops")


class _ViewCommand(click.Command):
    """A command with ``--checkpointer``, which its function gets, and the options that every command has."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with other commands, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.thread_parameters(), *found[own:]]


@click.command(cls=_ViewCommand, short_help="Show threads and runs on a local web page.")
@click.argument("source", required=False, metavar="[FILE:AGENT]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="Default: any that is free.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to serve at; another than this machine's own shows the page to the network, unencrypted.",
)
@click.option(
    "--allow-host", "names", multiple=True, metavar="NAME", help="A name that the server is called by; repeatable."
)
@click.option("--read-only", is_flag=True, help="Refuse answers, cancels, forks and resumes.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.pass_context
def view(
    ctx: click.Context,
    *,
    source: str | None,
    port: int,
    host: str,
    names: tuple[str, ...],
    read_only: bool,
    opens: bool,
    checkpointer: str | None,
) -> int:
    """Show the threads of a store on a web page of this machine, until Ctrl-C; prints its address.

    \b
    locus view
    locus view --checkpointer sqlite:runs.db --read-only
    locus view shop.py:agent

    A run is shown as it goes on, whichever process has it. With FILE:AGENT the page also explains the agent's
    condition, replays its runs, and goes on with those that wait for an answer; a graph is drawn. Without it an answer
    is left in the store, where a worker finds it.

    The address has a token that is good for one browser, once.

    Exit status: 0 it left; 1 the store failed; 2 the command line or the agent is wrong.
    """  # noqa: D301  click reads the character
    agent = None if source is None else load_agent(source)
    runtime = getattr(getattr(agent, "agent", agent), "runtime", None)
    store, new_loop = getattr(runtime, "store", None), event_loops.new_event_loop
    with cli.open_journals(ctx, checkpointer, store=store, new_loop=new_loop) as journals:
        viewer = Viewer(journals.store, name=journals.kept.name, agent=agent, read_only=read_only)
        path = getattr(journals.store, "path", None)
        is_missing = journals.kept.asked and isinstance(path, Path) and not path.exists()

        def tell(address: str) -> None:
            cli.print_text(f"{address}\n")
            if is_missing:
                cli.say(f"{journals.kept.name} does not exist yet; threads appear once a run creates it")
            cli.say("Ctrl-C leaves")
            if opens:
                webbrowser.open(address)

        journals.run(serve(viewer, host=host, port=port, names=names, on_ready=tell))
    return 0
