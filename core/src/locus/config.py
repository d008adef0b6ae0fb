"""``locus.toml``, or ``[tool.locus]`` in ``pyproject.toml``: what a project says once for all its agents.

The library reads no file by itself: `load_config` is called by the command line, or by a program that wants
one, and the result is passed to ``Agent(config=...)``. The schema::

    required = ["guard"]                  # these must work
    allow = ["acme-audit", "acme:guard"]  # where plugins may come from: "distribution" or "distribution:plugin"
    [plugins]
    enabled = ["audit", "guard"]          # these are on, in this order
    [plugins.audit]                       # settings of one plugin
    level = "INFO"
    key = { env = "AUDIT_KEY" }
    [agent]                               # defaults of every agent
    model = "acme:large"
    system_prompt = "Be brief."
    max_iterations = 12
    checkpointer = "acme:threads"
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from attrs import asdict, field

from locus.config_file import ConfigFile, find_config, read_file, search_folders
from locus.core.errors import ConfigError, SettingsError, closest
from locus.core.frozen import EMPTY, FrozenDict, freeze, frozen, thaw
from locus.plugins.activation import PluginRequest
from locus.plugins.manifest import Plugin, resolve
from locus.plugins.secret import redact, show_values
from locus.plugins.settings import Layer, structure

__all__ = [
    "AgentDefaults",
    "Config",
    "ConfigFile",
    "find_config",
    "load_config",
    "read_config",
    "read_file",
    "search_folders",
]


def _at_least_one(_: object, attribute: Any, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError(f"{attribute.name} must be 1 or more, got {value!r}")


def _positive(_: object, attribute: Any, value: float | None) -> None:
    if value is not None and not value > 0:
        raise ValueError(f"{attribute.name} must be greater than 0, got {value!r}")


def _repr_redacted(value: str | None) -> str:
    return repr(value if value is None else redact(value))


@frozen(kw_only=True)
class AgentDefaults:
    """The ``[agent]`` table: what ``Agent(config=...)`` takes where its own argument is left out.

    Args:
        model: ``"provider:model"``.
        system_prompt: text.
        max_iterations: 1 or more.
        checkpointer: ``"scheme:rest"`` of a plugin, or a path whose suffix an installed plugin takes; a relative one
            counts from the folder of the file that says so.
        conversation: the conversation manager, ``"scheme:rest"`` of a plugin; ``"none"`` = the whole conversation.
        max_tool_calls_per_turn, max_concurrent_tools: 1 or more, in place of the agent's defaults.
        model_timeout, tool_timeout: seconds, in place of the agent's defaults; ``inf`` for any time.
    """

    model: str | None = field(default=None, repr=_repr_redacted)
    system_prompt: str | None = None
    max_iterations: int | None = field(default=None, validator=_at_least_one)
    checkpointer: str | None = field(default=None, repr=_repr_redacted)
    conversation: str | None = None
    max_tool_calls_per_turn: int | None = field(default=None, validator=_at_least_one)
    max_concurrent_tools: int | None = field(default=None, validator=_at_least_one)
    model_timeout: float | None = field(default=None, validator=_positive)
    tool_timeout: float | None = field(default=None, validator=_positive)


@frozen(kw_only=True)
class _File:
    """The top of the file."""

    required: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    plugins: dict[str, Any] = field(factory=dict)
    agent: AgentDefaults = AgentDefaults()


@frozen(kw_only=True)
class Config:
    """What a project configured.

    Args:
        source: the file; ``""`` without one.
        enabled: names of plugins that are on, in order.
        required: names of plugins that must work.
        allow: where plugins may come from, see `PluginRequest`; None = anywhere.
        plugin_settings: the tables of settings by plugin, each with its file.
        agent: the defaults that are written down, by name; see `AgentDefaults`.
        env: the text of ``LOCUS_PLUGINS``.
        cli: what a command line says, ``name``, ``no:name``, or ``no:*`` for none of the above.
    """

    source: str = ""
    enabled: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    plugin_settings: FrozenDict[str, Layer] = field(default=EMPTY, converter=freeze)
    agent: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze, repr=show_values)
    env: str = ""
    cli: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """The folder of the file: what the relative paths in it count from."""
        return Path(self.source).absolute().parent if self.source else None

    def plugin_request(
        self,
        *,
        plugins: Sequence[str | Plugin] = (),
        keywords: Mapping[str, Any] = EMPTY,
        strict: bool = False,
    ) -> PluginRequest:
        """What is asked for: this configuration, and what takes precedence over it (see `PluginRequest`)."""
        return PluginRequest(
            enabled=self.enabled,
            required=self.required,
            allow=self.allow,
            tables=self.plugin_settings,
            env=self.env,
            cli=self.cli,
            plugins=tuple(plugins),
            keywords=keywords,
            strict=strict,
        )


def load_config(
    path: str | Path | ConfigFile | None = None,
    *,
    start: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration; see `read_config` for its arguments, what it trusts, and when it raises `ConfigError`.

    Raises:
        SettingsError: every entry that is wrong, unknown ones with the nearest that exists.
    """
    config, problems = read_config(path, start=start, environ=environ)
    if problems:
        raise SettingsError(problems)
    return config


def read_config(
    path: str | Path | ConfigFile | None = None,
    *,
    start: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[Config, tuple[str, ...]]:
    """What can be read of a configuration, and every entry that is wrong, to report all of it at once.

    It may start programs, and choose secrets and where they are sent. So one that was found, and not named, is first
    passed to the entry points ``vet`` of the group ``locus.config``, which return what the user has trusted of it.

    Args:
        path: the file, or what was read of it, which is trusted; when None the nearest is taken, see `find_config`.
        start: where to look from; the working directory when None.
        environ: where ``LOCUS_PLUGINS`` is; the process's environment when None.

    Raises:
        ConfigError: the file cannot be read, is not TOML or not trusted, or a directory has both kinds of file.
    """
    env = (os.environ if environ is None else environ).get("LOCUS_PLUGINS", "")
    if path is None:
        path = _vet(find_config(start))
    elif not isinstance(path, ConfigFile):
        path = read_file(Path(path))
    if path is None:
        return Config(env=env), ()
    source, prefix, data = path.source, path.prefix, path.data
    problems: list[str] = []
    try:
        top = structure(_File, [Layer(source, prefix, data)])
    except SettingsError as e:
        problems += e.problems
        given = data.get("plugins")
        # An `allow` that cannot be read allows nothing.
        closed = () if "allow" in data else None
        top = _File(plugins=dict(given) if isinstance(given, Mapping) else {}, allow=closed)
    enabled, tables = _plugins(source, f"{prefix}.plugins" if prefix else "plugins", top.plugins, problems)
    config = Config(
        source=source,
        enabled=enabled,
        required=top.required,
        allow=top.allow,
        plugin_settings=FrozenDict(tables),
        agent=FrozenDict((k, v) for k, v in asdict(top.agent).items() if v is not None),
        env=env,
    )
    return config, tuple(problems)


def _vet(file: ConfigFile | None) -> ConfigFile | None:
    vetters = [] if file is None else resolve("importlib_metadata:entry_points")(group="locus.config", name="vet")
    if file is not None and not vetters:
        raise ConfigError(f"{file.source} was found and is not trusted; name it, or install `locus config trust`")
    return reduce(lambda left, vetter: vetter.load()(left), vetters, file)


def _plugins(
    source: str, prefix: str, data: Mapping[str, Any], problems: list[str]
) -> tuple[tuple[str, ...], dict[str, Layer]]:
    """The list of the enabled, and the tables beside it; what is wrong is added to the problems."""
    enabled: tuple[str, ...] = ()
    tables: dict[str, Layer] = {}
    for key, value in data.items():
        if key == "enabled":
            if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
                enabled = tuple(value)
            else:
                problems.append(f"{source}: {prefix}.enabled is {thaw(value)!r:.60}; expected a list of names")
        elif isinstance(value, Mapping):
            tables[key] = Layer(source, f"{prefix}.{key}", value)
        else:
            near = "; did you mean 'enabled'?" if closest(key, ["enabled"]) else ""
            shown = f"{redact(repr(thaw(value))):.60}"
            problems.append(f"{source}: {prefix}.{key} is {shown}; expected a table of that plugin's settings{near}")
    return enabled, tables
