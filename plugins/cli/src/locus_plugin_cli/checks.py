"""What is wrong with the settings of plugins, all of it at once, whether an agent of the project uses them or not."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from locus.config import Config
from locus.core.errors import LocusError, SettingsError, closest
from locus.plugins import Catalogue, Layer, plugin_settings
from locus_plugin_cli.distributions import install_hint

__all__ = ["Checked", "check_config"]


@frozen
class Checked:
    """What `check_config` found: problems that stop an agent, and warnings that do not."""

    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_config(config: Config, installed: Catalogue, environ: Mapping[str, str] | None = None) -> Checked:
    """Read the settings of every plugin that is configured or switched on, whether an agent uses it or not.

    Args:
        config: what `locus.config.load_config` returned.
        installed: the plugins to look among.
        environ: where secrets come from; the process's environment when None.
    """
    problems: list[str] = []
    warnings: list[str] = []
    names = installed.names()
    for name in dict.fromkeys((*config.enabled, *config.required, *config.plugin_settings)):
        table = config.plugin_settings.get(name) or Layer(config.source, f"plugins.{name}", {})
        if name not in names:
            near = closest(name, names)
            where = f"{config.source}: plugin {name!r} is not installed"
            hint = f"; did you mean {near!r}?" if near else install_hint(name)
            (problems if name in config.required else warnings).append(f"{where}{hint}")
            continue
        try:
            plugin_settings(installed.manifest(name), [table], None, environ)
        except SettingsError as e:
            problems += e.problems
        except LocusError as e:
            (problems if name in config.required else warnings).append(f"{config.source}: {e}")
    return Checked(tuple(problems), tuple(warnings))
