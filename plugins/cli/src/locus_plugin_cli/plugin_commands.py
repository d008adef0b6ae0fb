"""Commands that plugins contribute through ``locus_register_commands``.

A value is a click command, or a reference to one (``"package.module:command"``), which spares programs that use
the plugin as a library the import of click. The plugins that are switched on are asked, and so is each installed plugin
whose manifest says that its commands need not be switched on: ``provides={"commands": "package.module"}``, where the
module implements the hook. A group among these that has the name of a group of this package adds its commands to it,
where that group is open to plugins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import click

from locus.core.errors import LocusError, PluginError
from locus.hooks import Contribution, HookManager
from locus.plugin import Plugin
from locus.plugins import Catalogue, PluginRequest, activate, load
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.output import say
from locus_plugin_cli.project import Project

__all__ = ["is_plugin", "is_unread", "load_commands", "load_group"]

_HOOK = "locus_register_commands"

#: The kind in a manifest's ``provides``.
_KIND = "commands"

#: This package as the owner of commands, in messages.
_SELF = "cli"


def is_plugin(name: str) -> bool:
    """Whether a plugin of that name is installed, switched on or not."""
    return name in Catalogue().names()


def is_unread(given: CommonOptions) -> bool:
    """Whether the commands of plugins are unknown, because the configuration cannot be used."""
    try:
        Project.of(given, asks=False)
    except LocusError:
        return True
    return False


def load_commands(given: CommonOptions, taken: Collection[str]) -> dict[str, click.Command]:
    """The commands of plugins outside of groups, by name; what is wrong is a warning each, and left out.

    Args:
        given: the common options of the command line.
        taken: names that cannot be contributed.
    """
    try:
        project = Project.of(given, asks=False)
        manifests = project.catalogue.manifests()
        found, errors = project.hooks().collect(_HOOK)
    except LocusError as e:
        # The command that was typed says the same if it concerns it; help must work with a broken configuration.
        _warn(e)
        return {}
    for error in errors:
        _warn(error)
    active = [(each.plugin, command) for each in found for command in _commands(each)]
    installed = [
        (manifest.name, command)
        for manifest in manifests
        for command in _offered(manifest)
        if not (isinstance(command, click.Group) and command.name in taken)  # an addition to a group, see `load_group`
    ]
    return _merge("", [*active, *installed], taken)


def load_group(given: CommonOptions, group: str, taken: Collection[str]) -> dict[str, click.Command]:
    """The commands that installed plugins add to a group, by name; what is wrong is a warning each, and left out.

    Args:
        given: the common options of the command line.
        group: the group's name. A plugin adds to it with a click group of that name.
        taken: the names of the commands that the group has.
    """
    try:
        manifests = Project.of(given, asks=False).catalogue.manifests()
    except LocusError as e:
        _warn(e)  # and without knowing which are allowed, none is read
        return {}
    return _merge(f"{group} ", (added for manifest in manifests for added in _additions(manifest, group)), taken)


def _additions(manifest: Plugin, group: str) -> Iterator[tuple[str, click.Command]]:
    """What one plugin adds to a group, each command with the plugin's name."""
    for command in _offered(manifest):
        if isinstance(command, click.Group) and command.name == group:
            yield from ((manifest.name, sub) for sub in command.commands.values())


def _offered(manifest: Plugin) -> list[click.Command]:
    """The commands that an installed plugin offers, switched on or not."""
    reference = manifest.provides.get(_KIND)
    if reference is None:
        return []
    try:
        # As if nothing else of the plugin were there: neither its settings nor its other hooks have a part in this.
        source = Plugin(name=manifest.name, api=manifest.api, summary=manifest.summary, hooks=(reference,))
        active = activate(PluginRequest(plugins=(source,)), Catalogue.only())
        found, errors = HookManager.build(active.plugins).collect(_HOOK)
    except LocusError as e:
        _warn(e)
        return []
    for error in errors:
        _warn(error)
    return [command for each in found for command in _commands(each)]


def _merge(path: str, found: Iterable[tuple[str, click.Command]], taken: Collection[str]) -> dict[str, click.Command]:
    """The commands by name, without those whose name is taken.

    Args:
        path: what comes before the name on the command line, for messages: ``""`` or ``"threads "``.
        found: each command with the plugin that has it.
        taken: the names that this package has.
    """
    owners = dict.fromkeys(taken, _SELF)
    made: dict[str, click.Command] = {}
    for plugin, command in found:
        name = str(command.name)
        if name in owners:
            _warn(PluginError(plugin, f"its command '{path}{name}' is taken by {owners[name]!r}; name it otherwise"))
        else:
            owners[name], made[name] = plugin, command
    return made


def _commands(contribution: Contribution) -> Iterator[click.Command]:
    """The command that was contributed, unless it is not one."""
    value: Any = contribution.value
    try:
        if isinstance(value, str):
            value = load(contribution.plugin, value)
        if not isinstance(value, click.Command) or not value.name:
            what = f"{_HOOK} returned {value!r:.80}; return click commands, or 'package.module:command'"
            raise PluginError(contribution.plugin, what)
    except PluginError as e:
        _warn(e)
    else:
        yield value


def _warn(error: LocusError) -> None:
    for line in explain_error(error)[1].splitlines():
        say(f"warning: {line}")
