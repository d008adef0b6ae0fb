"""From options to an agent: the model is chosen and made, the tools are loaded."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import frozen

from locus import Agent
from locus.core.errors import ConfigError, ModelError, PluginError
from locus.models import Model, get_model
from locus.plugins import load
from locus_kit.loading import load_tools
from locus_plugin_cli.compaction import Compaction, choose_compaction
from locus_plugin_cli.folders import FOLDER, folder_mark
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.model_choice import choose_model
from locus_plugin_cli.options import AgentOptions
from locus_plugin_cli.output import say
from locus_plugin_cli.project import Project
from locus_plugin_cli.saved_options import KEY, options_to_save, seal
from locus_plugin_cli.streams import standard
from locus_plugin_cli.text import one_line

__all__ = ["Session"]

#: The kind in a manifest's ``provides``: ``(say) -> context manager``, held while a command runs agents. It may give
#: a function that gets the error of a run that could not begin, and returns whether to try again.
_AROUND = "command_session"

#: What became of a plugin that the user should hear of.
_WORTH_A_WARNING = ("missing", "failed", "incompatible")


@frozen(kw_only=True)
class Session:
    """Everything that the runs of one command share.

    Args:
        options: as they were typed.
        project: the configuration and the plugins.
        chosen: the model's name.
        model: the model, made.
        compaction: keeps the conversation inside the model's window; None where that is switched off.
        tools: the tools of ``--tools``.
        journals: where conversations are kept.
        thread: the id of the conversation.
    """

    options: AgentOptions
    project: Project
    chosen: str
    model: Model
    compaction: Compaction | None
    tools: tuple[object, ...]
    journals: Journals
    thread: str

    @classmethod
    def open(cls, options: AgentOptions, project: Project, journals: Journals) -> Session:
        """Choose and make what the options name.

        Raises:
            ConfigError: something is misspelled, missing or contradictory.
            PluginError: a plugin that was asked for cannot be used.
        """
        standard().divert()
        # Tools first: a typing mistake in a file should not cost the loading of a model.
        tools = tuple(tool for reference in dict.fromkeys(options.tools) for tool in _tools(reference))
        chosen = choose_model(options.model, project, os.environ)
        model = _ready_model(chosen.model, project)
        return cls(
            options=options,
            project=project,
            chosen=chosen.model,
            model=model,
            compaction=choose_compaction(model, project),
            tools=tools,
            journals=journals,
            thread=options.thread or f"thread-{uuid4().hex[:12]}",
        )

    @property
    def kept(self) -> bool:
        """Whether the conversation outlives this command."""
        return self.journals.kept.lasting

    def agent(self, system: str | None = None) -> Agent[Any, Any]:
        """An agent; warns of plugins that it has to do without.

        Args:
            system: the system prompt; None = as the options and the configuration say.

        Raises:
            ConfigError, PluginError: it cannot be built.
        """
        agent = self.options.recipe.make(
            self.model,
            name=self.options.recipe.agent_id,
            tools=self.tools,
            system_prompt=self.options.system_prompt if system is None else system,
            max_iterations=self.options.max_iterations,
            model_settings=self.options.model_settings,
            checkpointer=self.journals.store,
            conversation_manager=self.compaction if self.compaction is not None and self.compaction.manages else None,
            hooks=() if self.compaction is None else [self.compaction],
            config=self.project.config,
            catalogue=self.project.catalogue,
        )
        for report in agent.runtime.plugins:
            if report.status in _WORTH_A_WARNING:
                say(f"warning: without {one_line(report.name)} ({report.status}): {one_line(report.detail)}")
            elif report.status == "active" and report.name in self.project.catalogue.names():
                self._begin(report.name)
        return agent

    def _begin(self, name: str) -> None:
        """Enter the command session of an active plugin."""
        reference = self.project.catalogue.manifest(name).provides.get(_AROUND)
        if reference is None:
            return
        try:
            self.journals.enter(name, lambda: load(name, reference)(say))
        except PluginError as e:
            say(f"warning: {one_line(str(e))}")

    def metadata(self, system: str | None = None) -> dict[str, Any]:
        """What the conversation is to remember of this command, as metadata of a run.

        Args:
            system: the system prompt in place of that of the options.

        Raises:
            ConfigError: the trust in the configuration file cannot be stored.
        """
        if self.kept:
            self.project.vouch()
        given = system is not None or self.options.system is not None
        return {
            KEY: self._remembered(system=given),
            FOLDER: folder_mark(Path.cwd()),
        }

    def _remembered(self, *, system: bool) -> dict[str, Any]:
        made = options_to_save(self.options, self.project, self.chosen, system=system)
        return seal(made) if self.kept else made

    def command(self, *more: str) -> str:
        """The command that takes another turn of this conversation.

        Args:
            more: what follows ``locus run --thread ID`` and the options, quoted where needed.
        """
        switches = [
            word for name in self.project.switches for word in (("--no-plugins",) if name == "no:*" else ("-p", name))
        ]
        return shlex.join([*self._begin_with(), *self.options.words(), *switches, *more])

    def resuming(self, *more: str) -> str:
        """The command that goes on with the open run; the conversation remembers the other options."""
        text = self.journals.kept.text
        store = () if text is None else ("--checkpointer", text)
        return shlex.join([*self._begin_with(), *store, *self.options.recipe.resuming, *more])

    def _begin_with(self) -> tuple[str, ...]:
        return "locus", self.options.recipe.command, "--thread", self.thread


def _ready_model(name: str, project: Project) -> Model:
    """The model, if its provider knows of nothing that every request would fail for, such as a missing key.

    Raises:
        ConfigError: it does; nothing has begun yet that would have to be resumed.
        PluginError: the provider cannot be used.
    """
    model = get_model(name, catalogue=project.catalogue, settings=project.config.plugin_settings)
    check = getattr(model, "check_ready", None)
    if check is not None:
        try:
            check()
        except ModelError as e:
            raise ConfigError(str(e)) from e
    return model


def _tools(reference: str) -> tuple[object, ...]:
    if not reference.endswith(".py") and str(Path.cwd()) not in sys.path:
        # A script's path starts at its own folder. At the end: nothing here may replace what is installed.
        sys.path.append(str(Path.cwd()))
    return load_tools(reference)
