"""What the command line finds in its working directory: the configuration and the installed plugins."""

from __future__ import annotations

from attrs import evolve, field, frozen

from locus.config import Config, load_config
from locus.hooks import HookManager
from locus.plugins import Activation, Catalogue, activate
from locus_plugin_cli.common_options import CommonOptions

__all__ = ["Project"]


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
