"""What `Agent` needs of this package, and nothing that a plain agent does not.

Building an agent without plugins, hooks and configuration imports neither the specifications nor discovery nor
settings: they are reached by reference, on first use. `import locus` has a budget, and most of it is classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from locus.core.frozen import EMPTY
from locus.hooks.reference import resolve
from locus.hooks.report import PluginReport
from locus.hooks.table import NO_HOOKS, HookTable

if TYPE_CHECKING:
    from locus.core.reflect import ReflectPolicy
    from locus.hooks.activation import Activation, Wanted
    from locus.hooks.discovery import Catalogue
    from locus.hooks.manager import HookManager
    from locus.hooks.manifest import Plugin

__all__ = ["Configured", "Wired", "provide", "wire"]


class Configured(Protocol):
    """The configuration of a project: a `locus.config.Config`."""

    @property
    def plugin_settings(self) -> Mapping[str, Any]:
        """Settings by plugin."""
        ...

    def wanted(self, *, plugins: Sequence[str | Plugin] = (), keywords: Mapping[str, Any] = EMPTY) -> Wanted:
        """What it asks for, with what the code asks for on top."""
        ...


@frozen(kw_only=True, eq=False)
class Wired:
    """The plugins and hooks of one agent.

    Args:
        table: what the loop calls.
        reports: each plugin that was asked for and each hook that was passed in code.
        tools: what plugins contribute, in order.
        conditions: classes of termination conditions that plugins contribute.
        reflect_policies: to be or-ed into the router.
        settings: by plugin: what the file says, and the settings of the active ones. `provide` takes it.
    """

    table: HookTable = NO_HOOKS
    reports: tuple[PluginReport, ...] = ()
    tools: tuple[Any, ...] = ()
    conditions: tuple[type, ...] = ()
    reflect_policies: tuple[ReflectPolicy, ...] = ()
    settings: Mapping[str, Any] = EMPTY


_BARE = Wired()


def wire(
    *,
    plugins: Sequence[str | Plugin] = (),
    hooks: Sequence[object] = (),
    keywords: Mapping[str, Any] = EMPTY,
    config: Configured | None = None,
    catalogue: Catalogue | None = None,
    options: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Wired:
    """Choose, load, configure, check, order and compile.

    Args:
        plugins: ``Agent(plugins=...)``.
        hooks: ``Agent(hooks=...)``.
        keywords: the keywords of ``Agent`` that are not its own.
        config: the project's configuration.
        catalogue: the installed plugins; a fresh scan when None, if one is needed at all.
        options: the names of ``Agent``'s own keywords, for the nearest to an unknown one.
        environ: where secrets come from; the process's environment when None.

    Raises:
        ConfigError, PluginError: see `locus.hooks.activation.activate` and `HookManager.build`.
    """
    if not (plugins or hooks or keywords) and config is None:
        return _BARE
    active: Activation | None = None
    if plugins or keywords or config is not None:
        if config is not None:
            wanted = config.wanted(plugins=tuple(plugins), keywords=keywords)
        else:
            wanted = resolve("locus.hooks.activation:Wanted")(plugins=tuple(plugins), keywords=keywords)
        active = resolve("locus.hooks.activation:activate")(wanted, catalogue, environ=environ, options=options)
    chosen, reports, settings = ((), (), EMPTY) if active is None else (active.plugins, active.reports, active.settings)
    manager: HookManager = resolve("locus.hooks.manager:HookManager").build(chosen, hooks, reports=reports)
    contributed = manager.contributed
    return Wired(
        table=manager.table,
        reports=manager.reports,
        tools=tuple(c.value for c in contributed.tools),
        conditions=tuple(c.value for c in contributed.conditions),
        reflect_policies=tuple(c.value for c in contributed.reflect_policies),
        settings=settings if config is None else {**config.plugin_settings, **settings},
    )


def provide(kind: str, text: str, *, catalogue: Catalogue | None = None, settings: Mapping[str, Any] = EMPTY) -> object:
    """What a plugin makes of ``"scheme:rest"``: see `locus.hooks.providers.provide`."""
    made: object = resolve("locus.hooks.providers:provide")(kind, text, catalogue=catalogue, settings=settings)
    return made
