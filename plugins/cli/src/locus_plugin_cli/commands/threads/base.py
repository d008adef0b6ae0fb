"""What the commands of ``locus threads`` share: the group, its options, and the store that they open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import click
from attrs import evolve

from locus import Agent
from locus.journal import JournalStore
from locus_plugin_cli import status
from locus_plugin_cli.commands.threads.listing import DEFAULT_LIMIT, print_threads
from locus_plugin_cli.common_options import CommonOptions, common_options, json_lines_option
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.open_group import OpenGroup
from locus_plugin_cli.options import AgentOptions, checkpointer_option
from locus_plugin_cli.parameter_types import NOT_BLANK
from locus_plugin_cli.project import Project
from locus_plugin_cli.saved_options import restore_options
from locus_plugin_cli.session import Session
from locus_plugin_cli.thread_store import StoreChoice, choose_store

__all__ = ["make_agent", "open_journals", "pass_on", "threads", "wants_json", "with_store"]

_JSON, _STORE = "locus.threads.json", "locus.threads.checkpointer"

_limit = click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"At most the N newest; 0 = all. Default: {DEFAULT_LIMIT}, and all with --json.",
)
_search = click.option(
    "--search",
    type=NOT_BLANK,
    metavar="TEXT",
    help="Those with all these words in their title, their ID or what was said, in upper or lower case.",
)


@click.group(
    cls=OpenGroup,
    invoke_without_command=True,
    short_help="List, show, resume, delete, prune threads.",
)
@json_lines_option
@_limit
@_search
@checkpointer_option
@common_options
@click.pass_context
def threads(
    ctx: click.Context, *, as_json: bool, limit: int | None, search: str | None, checkpointer: str | None
) -> int:
    """List the threads that are kept, the newest first; the commands below do more with one.

    A thread is a conversation: `locus run` and `locus chat` keep each in a file of yours unless --no-keep says
    otherwise. Its title is how its first prompt begins; `locus threads show ID` tells what happened and what it cost.
    """
    if ctx.invoked_subcommand is not None:
        pass_on(ctx, checkpointer=checkpointer, as_json=as_json)
        return status.OK
    with open_journals(ctx, checkpointer) as journals:
        return print_threads(journals, as_json=as_json, limit=limit, search=search)


@threads.command("list", short_help="List the threads, the newest first.")
@json_lines_option
@_limit
@_search
@checkpointer_option
@common_options
@click.pass_context
def _list(ctx: click.Context, *, as_json: bool, limit: int | None, search: str | None, checkpointer: str | None) -> int:
    """List the threads that are kept, the newest first: the same as `locus threads`."""
    with open_journals(ctx, checkpointer) as journals:
        return print_threads(journals, as_json=wants_json(ctx, as_json=as_json), limit=limit, search=search)


def pass_on(ctx: click.Context, *, checkpointer: str | None, as_json: bool) -> None:
    """Let the commands of a group know what was given before their names."""
    ctx.meta[_JSON], ctx.meta[_STORE] = as_json, checkpointer


def wants_json(ctx: click.Context, *, as_json: bool) -> bool:
    """Whether ``--json`` was given, before or behind the command."""
    return as_json or bool(ctx.meta.get(_JSON))


def open_journals(
    ctx: click.Context,
    checkpointer: str | None,
    *,
    writes: bool = False,
    store: JournalStore | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> Journals:
    """The store that a command is about.

    Args:
        ctx: the command's.
        checkpointer: ``--checkpointer`` after the command; it may come before it as well.
        writes: a thread may be added to it.
        store: the one of a program's agent, for where the command line names none; None = look further.
        new_loop: makes the event loop that the command works on; None = asyncio does.

    Raises:
        ConfigError, PluginError: no store is configured, or it cannot be made.
    """
    text = checkpointer if checkpointer is not None else ctx.meta.get(_STORE)
    if text is None and store is not None:
        return Journals(StoreChoice.of(store), new_loop=new_loop)
    chosen = choose_store(text, Project.of(ctx.ensure_object(CommonOptions)), needed=True, writes=writes)
    return Journals(chosen, new_loop=new_loop)


def with_store(ctx: click.Context, options: AgentOptions) -> AgentOptions:
    """The options of an agent, with a ``--checkpointer`` that comes before the command."""
    if options.checkpointer is None and ctx.meta.get(_STORE) is not None:
        return evolve(options, checkpointer=ctx.meta[_STORE])
    return options


def make_agent(ctx: click.Context, journals: Journals, thread_id: str, given: Mapping[str, Any]) -> Agent[Any, Any]:
    """The agent that a thread was begun with: as the thread remembers it, and as the command line says otherwise.

    Args:
        ctx: the command's.
        journals: the store with the thread.
        thread_id: the thread.
        given: the fields of `AgentOptions` that the command line has.

    Raises:
        NothingToResume: there is no such thread.
        ConfigError, PluginError: the agent cannot be built.
    """
    options = evolve(with_store(ctx, AgentOptions(**given)), thread=thread_id)
    begun, project = restore_options(journals.found(thread_id).state, options, ctx.ensure_object(CommonOptions))
    return Session.open(begun, project, journals).agent()
