"""Commands that plugins contribute through ``locus_register_commands``.

A value is a click command, or a reference to one (``"package.module:command"``), which spares programs that use
the plugin as a library the import of click. Only plugins that are switched on are asked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

from locus.core.errors import LocusError, PluginError
from locus.hooks import Contribution
from locus.plugins import Catalogue, load
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.failures import explain_error
from locus_plugin_cli.output import say
from locus_plugin_cli.project import Project

__all__ = ["is_plugin", "load_commands"]


def is_plugin(name: str) -> bool:
    """Whether a plugin of that name is installed, switched on or not."""
    return name in Catalogue().names()


def load_commands(given: CommonOptions, taken: Collection[str]) -> dict[str, click.Command]:
    """The contributed commands by name; what is wrong is one line on standard error each, and left out.

    Args:
        given: the common options of the command line.
        taken: names that cannot be contributed.
    """
    try:
        found, errors = Project.of(given).hooks().collect("locus_register_commands")
    except LocusError as e:
        # The command that was typed says the same if it concerns it; help must work with a broken configuration.
        _warn(e)
        return {}
    made: dict[str, click.Command] = {}
    for error in errors:
        _warn(error)
    for contribution in found:
        try:
            command = _command(contribution)
            name = str(command.name)
            if name in taken or name in made:
                raise PluginError(contribution.plugin, f"its command {name!r} is taken; name it otherwise")
        except PluginError as e:
            _warn(e)
        else:
            made[name] = command
    return made


def _command(contribution: Contribution) -> click.Command:
    value: Any = contribution.value
    if isinstance(value, str):
        value = load(contribution.plugin, value)
    if not isinstance(value, click.Command) or not value.name:
        raise PluginError(
            contribution.plugin,
            f"locus_register_commands returned {value!r:.80}; return click commands, or 'package.module:command'",
        )
    return value


def _warn(error: LocusError) -> None:
    for line in explain_error(error)[1].splitlines():
        say(f"warning: {line}")
