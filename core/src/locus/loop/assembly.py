"""Putting an agent together: its plugins, its model, its tools, its store.

Loaded when the first agent is built: this is where the plugin machinery and the tool schemas come in.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from locus.core.errors import ConfigError
from locus.core.frozen import EMPTY
from locus.core.protocols import has_all_of
from locus.core.reflect import AnyOf, ReflectPolicy
from locus.hooks.manager import HookManager
from locus.journal.store import JournalStore
from locus.models.output import OutputSchema, output_schema
from locus.models.registry import get_model
from locus.plugins.activation import Activation, Wanted, activate
from locus.plugins.discovery import Catalogue
from locus.plugins.manifest import Plugin
from locus.plugins.providers import provide
from locus.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from locus.config import Config
    from locus.models.protocol import Model

__all__ = ["Parts", "assemble", "configured", "schema_of"]


@frozen(kw_only=True)
class Parts:
    """What an agent is made of.

    Args:
        hooks: the compiled hooks, with what plugins contribute.
        model: the model.
        tools: the user's tools and the plugins'.
        reflect: when to reflect, or None.
        store: where journals are kept, or None.
        resolve: from a model's name to the model.
    """

    hooks: HookManager
    model: Model
    tools: ToolRegistry
    reflect: ReflectPolicy | None
    store: JournalStore | None
    resolve: partial[Model]


def assemble(
    *,
    model: str | Model | None,
    tools: Iterable[object],
    checkpointer: JournalStore | str | os.PathLike[str] | None,
    hooks: Sequence[object],
    plugins: Sequence[str | Plugin],
    config: Config | None,
    catalogue: Catalogue | None,
    options: Mapping[str, Any],
    own_options: Iterable[str],
) -> Parts:
    """Resolve everything that an agent names.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        PluginError: a plugin that was asked for cannot be used.
    """
    given = [plugin for plugin in plugins if isinstance(plugin, Plugin)]
    if given:  # they provide by scheme what they provide, like the installed ones
        catalogue = (Catalogue() if catalogue is None else catalogue).extended(given)
    active = _active(plugins, config, options, own_options, catalogue)
    manager = HookManager.build(active.plugins, hooks, reports=active.reports)
    contributed = manager.contributed
    registry = ToolRegistry.of(tools)
    if contributed.tools:
        registry = registry.with_tools(*(c.value for c in contributed.tools))
    policies = [c.value for c in contributed.reflect_policies]
    settings = {**(config.plugin_settings if config is not None else {}), **active.settings}
    # What a program names counts from where it stands, what a file names from where that lies.
    folder = config.folder if config is not None and checkpointer is None else None
    store = checkpointer if checkpointer is not None else configured(config).get("checkpointer")
    if isinstance(store, str | os.PathLike):
        made: Any = provide("checkpointer", store, catalogue=catalogue, settings=settings, folder=folder)
        store = made
    if store is not None and not has_all_of(store, JournalStore):
        raise ConfigError(
            f"checkpointer is {store!r}; it needs the methods of JournalStore, or wrap what saves and loads dicts "
            "in locus.journal.SnapshotAdapter(save, load)"
        )
    return Parts(
        hooks=manager,
        model=_model(model, config, settings, catalogue),
        tools=registry,
        reflect=AnyOf(*policies) if policies else None,
        store=store,
        resolve=partial(get_model, catalogue=catalogue, settings=settings),
    )


def _active(
    plugins: Sequence[str | Plugin],
    config: Config | None,
    options: Mapping[str, Any],
    own_options: Iterable[str],
    catalogue: Catalogue | None,
) -> Activation:
    if config is None and not plugins and not options:
        return Activation()  # nothing was asked for: nothing is looked for
    if config is None:
        wanted = Wanted(plugins=tuple(plugins), keywords=options)
    else:
        wanted = config.wanted(plugins=tuple(plugins), keywords=options)
    return activate(wanted, catalogue, environ=os.environ, options=own_options)


def _model(
    model: str | Model | None, config: Config | None, settings: Mapping[str, Any], catalogue: Catalogue | None
) -> Model:
    chosen = model if model is not None else configured(config).get("model")
    if chosen is None:
        raise ConfigError(
            "no model: pass model='provider:model' (any installed provider) or an object with "
            "`name` and `async complete(request, on_chunk)`, or set [agent] model in locus.toml"
        )
    if isinstance(chosen, str):
        return get_model(chosen, catalogue=catalogue, settings=settings)
    if not callable(getattr(chosen, "complete", None)) or not isinstance(getattr(chosen, "name", None), str):
        raise ConfigError(f"model is {chosen!r}; it needs `name` and `async complete(request, on_chunk=None)`")
    made: Model = chosen
    return made


def configured(config: Config | None) -> Mapping[str, Any]:
    """The ``[agent]`` table of a configuration."""
    return EMPTY if config is None else config.agent


def schema_of(given: Any) -> OutputSchema[Any] | None:
    """The output schema that a caller gave in whatever form."""
    return None if given is None else output_schema(given)
