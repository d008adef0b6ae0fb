"""``locus mcp serve`` and ``lock``: serve tools over MCP, and accept the tools of servers."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import click

from locus.core.errors import ConfigError, LocusError, ToolDefinitionError
from locus.plugin import Lazy
from locus_kit.loading import load_tools
from locus_plugin_mcp.review import print_changes

serving: Any = Lazy("locus_plugin_mcp.serving")
locking: Any = Lazy("locus_plugin_mcp.locking")
# The command line is another distribution; it is there when a command is called.
cli: Any = Lazy("locus.cli")

__all__ = ["mcp", "source_of"]


@click.group()
def mcp() -> None:
    """Tools over the Model Context Protocol."""


@mcp.command()
@click.argument("source")
@click.option("--name", default="", help="What the server is called.")
@click.option(
    "--http", "port", type=click.IntRange(0, 65_535), help="Serve HTTP at this port of 127.0.0.1; 0: a free one."
)
def serve(source: str, name: str, port: int | None) -> None:
    """Serve the tools of SOURCE over MCP, on the standard input and output or over HTTP.

    SOURCE is module:agent or module:tools (a name in a module), a module, or a file that ends in .py.
    """
    try:
        anyio.run(_serve, source_of(source), name, port)
    except (LocusError, OSError) as e:
        raise click.ClickException(str(e)) from e
    except KeyboardInterrupt:
        return  # it was served until now


@mcp.command()
@click.option(
    "--accept", "accepted", metavar="NAME", multiple=True, help="Accept the tools of this server as they are."
)
@click.pass_context
def lock(ctx: click.Context, *, accepted: tuple[str, ...]) -> int:
    """Show which tools of the servers are new or have changed since they were accepted; on a terminal, ask about them.

    The model does not get such tools until they are accepted, here or with --accept.

    Exit status: 0 nothing is held back; 1 something is, or a server cannot be used.
    """
    try:
        found = anyio.run(locking.examine_locks, cli.settings_of(ctx, "mcp"), accepted)
        return max([_show(each) for each in found], default=0)
    except LocusError as e:
        raise click.ClickException(str(e)) from e


def _show(examined: Any) -> int:
    name = cli.one_line(examined.server)
    cli.print_text(f"{name}: {examined.sentence}\n")
    print_changes(examined.changes)
    if examined.changes and cli.is_person_present() and cli.confirm(f"Accept the tools of {name}?"):
        examined.accept()
        cli.print_text(f"{name}: accepted\n")
        return 0
    return 1 if examined.changes or examined.problem else 0


async def _serve(source: object, name: str, port: int | None) -> None:
    await serving.serve(source, name=name, port=port, started=lambda url: cli.say(f"serving at {url}"))


def source_of(reference: str) -> object:
    """The tools or the agent of a reference on the command line.

    Raises:
        ConfigError: the reference cannot be resolved.
    """
    module, colon, attribute = reference.rpartition(":")
    if not colon:
        return load_tools(reference)
    if str(Path.cwd()) not in sys.path:
        # At the end, so that files of the folder do not shadow installed packages.
        sys.path.append(str(Path.cwd()))
    try:
        found: object = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        raise ConfigError(f"{reference!r} cannot be served: {e}; give module:name, a module, or a file.py") from e
    except (Exception, SystemExit) as e:
        raise ToolDefinitionError(f"{reference!r} cannot be served: {type(e).__name__}: {e}") from e
    return found
