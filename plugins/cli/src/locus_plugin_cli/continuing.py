"""The next turn of a conversation that is kept: which one, and with what it was begun."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from locus.core.errors import NothingToResume
from locus.core.state import AgentState
from locus.journal import JournalHost, ThreadQuery
from locus.journal.listing import parent_thread
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.folders import FOLDER, folder_mark
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.options import AgentOptions
from locus_plugin_cli.output import say
from locus_plugin_cli.overview import list_threads
from locus_plugin_cli.project import Project
from locus_plugin_cli.saved_options import restore_options
from locus_plugin_cli.text import one_line

__all__ = ["choose_thread", "take_up"]


def choose_thread(journals: Journals, options: AgentOptions) -> AgentOptions:
    """The options with the newest thread of this folder where ``--continue`` asks for it.

    Raises:
        NothingToResume: nothing of this folder is kept.
        StoreError: the store cannot be used.
    """
    if not options.newest:
        return options
    query = ThreadQuery(agent_id=options.recipe.agent_id, metadata={FOLDER: folder_mark(Path.cwd())})
    found = (info.thread_id for info in journals.run(list_threads(journals.store, query)))
    newest = next((thread for thread in found if parent_thread(thread) is None), None)
    if newest is None:
        where = "this command" if not journals.kept.lasting else one_line(journals.kept.name)
        raise NothingToResume(
            f"no conversation of {Path.cwd()} is kept in {where}; without --continue one begins, and "
            "--thread ID continues one that `locus threads` lists"
        )
    journals.insist()
    return evolve(options, thread=newest, newest=False)


def take_up(
    journals: Journals, options: AgentOptions, given: CommonOptions, project: Project
) -> tuple[AgentOptions, Project, AgentState | None]:
    """What the next turn of a thread is taken with: what is typed now, else what the thread remembers.

    Args:
        journals: the store.
        options: as they were typed.
        given: the common options as they were typed.
        project: what the command line finds here, for a thread that begins.

    Returns:
        The options, the project, and the thread's state; None for a thread that begins.

    Raises:
        ConfigError: the remembered configuration file cannot be read, or is wrong.
        StoreError, CheckpointError: the thread cannot be read.
    """
    if options.thread is None:
        return options, project, None
    host = journals.run(JournalHost.peek(journals.store, options.thread))
    if host is None or host.last is None:
        return options, project, None
    restored, project = restore_options(host.state, options, given)
    if not options.tools:
        gone = [tools for tools in restored.tools if tools.endswith(".py") and not Path(tools).is_file()]
        for tools in gone:
            say(
                f"warning: the conversation had the tools of {one_line(tools)}, and that file was not found; "
                "--tools names it"
            )
        restored = evolve(restored, tools=tuple(tools for tools in restored.tools if tools not in gone))
    return restored, project, host.state
