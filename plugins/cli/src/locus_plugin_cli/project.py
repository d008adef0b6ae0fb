"""What the command line finds in its working directory: the configuration and the installed plugins."""

from __future__ import annotations

import os
from typing import Any

import click
from attrs import evolve, field, frozen

from locus.config import Config, load_config
from locus.hooks import HookManager
from locus.plugins import Activation, Catalogue, Layer, activate, plugin_settings
from locus_plugin_cli.common_options import CommonOptions

__all__ = ["Project", "settings_of"]


@frozen
class Project:
    """The configuration and the plugins.

    Args:
        config: as read from the file, with what the command line says.
        catalogue: the installed plugins.
    """

    config: Config
    catalogue: Catalogue = field(factory=Catalogue)

    @property
    def switches(self) -> tuple[str, ...]:
        """What ``-p`` and ``--no-plugins`` say, see `CommonOptions.switches`."""
        return self.config.cli

    @classmethod
    def of(cls, given: CommonOptions) -> Project:
        """The project that a command line is about.

        Raises:
            ConfigError: the configuration file cannot be read, or is wrong.
        """
        return cls(evolve(load_config(given.config), cli=given.switches))

    def activation(self) -> Activation:
        """The plugins that an agent of this project has.

        Raises:
            ConfigError: their settings, or what asks for them, is wrong.
            PluginError: one that must work cannot be used.
        """
        return activate(self.config.plugin_request(), self.catalogue)

    def hooks(self) -> HookManager:
        """The hooks of these plugins, checked and in order.

        Raises:
            ConfigError, PluginError: see `activation`.
        """
        active = self.activation()
        return HookManager.build(active.plugins, reports=active.reports)


def settings_of(ctx: click.Context, name: str) -> Any:
    """The settings of an installed plugin as the command line and the configuration have them; None if it takes none.

    Args:
        ctx: the context of the command that asks.
        name: the plugin's.

    Raises:
        ConfigError: the configuration cannot be read, or its settings are wrong.
    """
    project = Project.of(ctx.ensure_object(CommonOptions))
    layer = project.config.plugin_settings.get(name)
    layers = [layer] if isinstance(layer, Layer) else []
    return plugin_settings(project.catalogue.manifest(name), layers, None, os.environ)
