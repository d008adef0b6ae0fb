"""Where conversations are kept: what the command line names, else the configuration, else a file of the user's.

Which plugin keeps that file is not chosen here: it is the installed one that takes files which end like it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from locus.core import has_all_of
from locus.core.errors import ConfigError, LocusError, SettingsError
from locus.journal import JournalStore, MemoryStore
from locus.plugins import provide, redact
from locus_kit.state import state_folder
from locus_plugin_cli.distributions import install_command
from locus_plugin_cli.output import say
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import one_line

__all__ = ["StoreChoice", "choose_store", "warn_and_use_memory"]

_FILE = "threads.db"


@frozen(kw_only=True)
class StoreChoice:
    """A store, and how it came to be this one.

    Args:
        store: where journals are kept.
        name: what it is called in messages.
        text: what ``--checkpointer`` takes to get it again, without a password in it; None where nothing needs to be
            said for that.
        lasting: it outlives the command.
        asked: it was asked for, so that it must not be done without.
    """

    store: JournalStore
    name: str
    text: str | None = None
    lasting: bool = True
    asked: bool = False

    @classmethod
    def in_memory(cls) -> StoreChoice:
        """Journals that end with this command."""
        return cls(store=MemoryStore(), name="memory", lasting=False)

    @classmethod
    def of(cls, store: JournalStore) -> StoreChoice:
        """The store that a program gave its agent: a file is named by its path."""
        path = getattr(store, "path", None)
        text = str(path) if isinstance(path, Path) else None
        return cls(store=store, name=text or type(store).__name__, text=text, asked=True)


def choose_store(
    text: str | None, project: Project, *, keep: bool = True, needed: bool = False, writes: bool = True
) -> StoreChoice:
    """Where this command keeps conversations, or finds them.

    Args:
        text: ``--checkpointer``, or None.
        project: the configuration and the installed plugins.
        keep: False for this process's memory, unless ``text`` says otherwise.
        needed: the command is about what is kept: without a store that is an error.
        writes: whether a folder for it is made; what only looks leaves no trace.

    Raises:
        ConfigError: what names the store is wrong, or nothing keeps anything and that is needed.
        PluginError: the plugin of a store that was asked for cannot be used.
    """
    if text is not None:
        shown = redact(text)
        return StoreChoice(store=_made(text, f"--checkpointer {shown}", project), name=shown, text=shown, asked=True)
    if not keep:
        return StoreChoice.in_memory()
    configured = project.config.agent.get("checkpointer")
    if configured is not None:
        shown = redact(configured)
        where = f"[agent] checkpointer = {shown!r} in {project.config.source}"
        return StoreChoice(store=_made(configured, where, project, project.config.folder), name=shown, asked=True)
    try:
        found = _default(project, make=writes)
    except SettingsError:
        raise
    except (LocusError, OSError, RuntimeError) as e:
        if needed:
            raise
        return warn_and_use_memory(e)
    if found is None and needed:
        raise ConfigError(
            "conversations cannot be kept here: no installed plugin stores them in a file; "
            f"{install_command('sqlite')} for one that does, or name a store with --checkpointer"
        )
    return found or StoreChoice.in_memory()


def warn_and_use_memory(error: Exception) -> StoreChoice:
    """Continue without a store that was not asked for, and say so."""
    said = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    say(f"warning: this conversation is not kept: {one_line(said)}")
    return StoreChoice.in_memory()


def _default(project: Project, *, make: bool) -> StoreChoice | None:
    """The user's own file, or None where no plugin keeps such files."""
    takers = project.catalogue.takes("checkpointer", Path(_FILE).suffix)
    if not takers:
        return None
    if len(takers) > 1:
        raise ConfigError(
            f"{' and '.join(takers)} take such a file; choose one with [agent] checkpointer = "
            f"'{takers[0]}:PATH' in locus.toml, or with --checkpointer"
        )
    folder = state_folder()
    if make:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _FILE
    return StoreChoice(store=_made(f"{takers[0]}:{path}", str(path), project), name=str(path))


def _made(text: str, where: str, project: Project, folder: Path | None = None) -> JournalStore:
    settings = project.config.plugin_settings
    made: Any = provide("checkpointer", text, catalogue=project.catalogue, settings=settings, folder=folder)
    if not has_all_of(made, JournalStore):
        raise ConfigError(f"{where}: the plugin made {made!r:.60}, which is no journal store")
    store: JournalStore = made
    return store
