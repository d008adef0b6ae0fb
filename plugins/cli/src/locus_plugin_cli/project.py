"""What the command line finds in its working directory: the configuration and the installed plugins."""

from __future__ import annotations

import os
from typing import Any

import click
from attrs import evolve, field, frozen

from locus.config import Config, ConfigFile, load_config
from locus.core.errors import ConfigError
from locus.hooks import HookManager
from locus.plugin import Plugin
from locus.plugins import Activation, Catalogue, Layer, activate, load, plugin_settings
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.vetting import find_vetted, open_trust

__all__ = ["Project", "active_plugins", "load_provided", "settings_of", "with_defaults"]

#: The plugins that the command line enables by default, with their distributions.
_DEFAULTS = {"provenance": "locus-plugin-provenance"}


def with_defaults(config: Config, switches: tuple[str, ...] = ()) -> Config:
    """A configuration with the plugins that are enabled by default, unless it or the command line says otherwise.

    Args:
        config: as read from the file.
        switches: what the command line says about plugins.
    """
    allow = config.allow
    if allow is not None:
        # It is a dependency of this package, and a list of other plugins must not disable a guard.
        allow = (*allow, *(f"{distribution}:{name}" for name, distribution in _DEFAULTS.items()))
    named = {name.removeprefix("no:") for name in (*config.enabled, *config.required)}
    unnamed = tuple(name for name in _DEFAULTS if name not in named)
    return evolve(config, cli=switches, enabled=(*unnamed, *config.enabled), allow=allow)


@frozen
class Project:
    """The configuration and the plugins.

    Args:
        config: as read from the file, with what the command line says.
        catalogue: the installed plugins; of those that the configuration does not allow nothing is imported.
        named: the file that the command line named, and so trusts.
    """

    config: Config
    catalogue: Catalogue = field(factory=Catalogue)
    named: ConfigFile | None = None

    @property
    def switches(self) -> tuple[str, ...]:
        """What ``-p`` and ``--no-plugins`` say, see `CommonOptions.switches`."""
        return self.config.cli

    @classmethod
    def of(cls, given: CommonOptions, *, asks: bool = True) -> Project:
        """The project that a command line is about.

        Args:
            given: the common options.
            asks: see `find_vetted`.

        Raises:
            ConfigError: the configuration file cannot be read, is wrong, or is not trusted.
        """
        file = find_vetted(given, asks=asks)
        return cls.configured(file, given.switches, named=given.config is not None)

    @classmethod
    def configured(cls, file: ConfigFile | None, switches: tuple[str, ...], *, named: bool = False) -> Project:
        """The project of a configuration.

        Args:
            file: what may be used of it; None without one.
            switches: what the command line says about plugins.
            named: the command line named the file.

        Raises:
            ConfigError: it is wrong.
        """
        config = Config(env=os.environ.get("LOCUS_PLUGINS", "")) if file is None else load_config(file)
        config = with_defaults(config, switches)
        return cls(config, Catalogue().allowing(config.allow), file if named else None)

    def vouch(self) -> None:
        """Trust a file that was named: the conversation that begins will refer to it later.

        Raises:
            ConfigError: the trust cannot be stored.
        """
        if self.named is not None:
            open_trust(self.named).add(self.named)

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


def active_plugins(ctx: click.Context) -> tuple[Plugin, ...]:
    """The manifests of the plugins that are switched on for a command.

    Raises:
        ConfigError, PluginError: see `Project.activation`.
    """
    return tuple(each.manifest for each in Project.of(ctx.ensure_object(CommonOptions)).activation().plugins)


def load_provided(ctx: click.Context, kind: str, option: str, package: str) -> Any:
    """What an installed plugin provides of a kind; those that are switched on come before others.

    Args:
        ctx: the context of the command that asks.
        kind: a key of `Plugin.provides`.
        option: what asks for it, for the error.
        package: one that has it, for the error.

    Raises:
        ConfigError: no plugin that is installed, allowed and not switched off provides it.
        PluginError: it cannot be loaded.
    """
    project = Project.of(ctx.ensure_object(CommonOptions))
    manifests = [m for m in project.catalogue.manifests() if f"no:{m.name}" not in project.switches]
    for manifest in (*active_plugins(ctx), *manifests):
        if kind in manifest.provides:
            return load(manifest.name, manifest.provides[kind])
    raise ConfigError(
        f"{option}: expected an installed plugin that provides {kind!r}, got none: pip install '{package}'"
    )


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
