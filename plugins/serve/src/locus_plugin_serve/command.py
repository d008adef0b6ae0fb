"""``locus serve``: puts an agent behind an address, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import click
from attrs import evolve

from locus.core.errors import ConfigError
from locus.plugin import Lazy
from locus_plugin_serve.settings import ServeSettings

__all__ = ["serve"]

# Other distributions, which are there when the command is called and need not be before.
cli: Any = Lazy("locus.cli")
worker: Any = Lazy("locus.worker")
server: Any = Lazy("locus_plugin_serve.server")
# It loads uvloop, which `--help` can do without.
event_loops: Any = Lazy("locus_kit.event_loops")

#: So many new objects before the collector looks at them; Python's default is 700.
_YOUNG = 50_000


def _relax_collector() -> None:
    """Have the garbage collector look less often, and not at what is loaded: it took an eighth of the CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])


class _StoreCommand(click.Command):
    """A command with ``--checkpointer``, which its function gets, and the options that every command has."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with other commands, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.thread_parameters(), *found[own:]]


@click.command(cls=_StoreCommand, short_help="Put an agent behind an address, until Ctrl-C or SIGTERM.")
@click.argument("source", metavar="MODULE:NAME")
@click.option("--host", metavar="ADDRESS", help="Listen there; default: host of [plugins.serve], else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; 0: a free one. Default: 8000.")
@click.option(
    "--drain", type=click.FloatRange(min=0), metavar="SECONDS", help="How long runs may take to end when it leaves."
)
@click.pass_context
def serve(
    ctx: click.Context,
    *,
    source: str,
    host: str | None,
    port: int | None,
    drain: float | None,
    checkpointer: str | None,
) -> int:
    """Serve an agent: each request is a run on the journal.

    \b
    locus serve shop:agent
    locus serve shop.py:agent --port 8080 --checkpointer runs.db

    shop:agent is the variable agent of shop.py, or of the package shop: an Agent with a name=. Tokens and limits are
    settings, in [plugins.serve]. Threads are kept where --checkpointer says, else where the agent keeps its threads,
    else in a file of yours.

    Ctrl-C or SIGTERM: it takes no more turns, and those under way get --drain seconds; what is not done then goes on
    with the next server, as after a crash. A second one leaves at once.

    Exit status: 0 it left; 1 the store failed; 2 the command line, the settings or the agent are wrong; 130 or 143 left
    at once.
    """  # noqa: D301  click reads the character
    given: Mapping[str, Any] = {"host": host, "port": port, "drain": drain}
    settings: ServeSettings = cli.settings_of(ctx, "serve")
    settings = evolve(settings, **{name: value for name, value in given.items() if value is not None})
    settings.check_bind()
    agent = worker.load_agent(source)
    with cli.open_journals(
        ctx, checkpointer, writes=True, store=agent.runtime.store, new_loop=event_loops.new_event_loop
    ) as journals:
        if not journals.store.keeps_history:
            raise ConfigError(f"{journals.kept.name} keeps no history; name a store that does with --checkpointer")
        kept = agent.with_checkpointer(journals.store)
        users = ", ".join(sorted(settings.tokens)) or "everybody on this machine"

        def announce(url: str) -> None:
            _relax_collector()
            cli.say(f"{agent.name} at {url} for {users}, in {journals.kept.name}; Ctrl-C leaves")

        journals.run(server.serve(kept, settings, started=announce))
    return 0
