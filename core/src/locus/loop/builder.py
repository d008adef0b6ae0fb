"""From an agent's options to its `AgentRuntime`: plugins, model, tools and store are resolved, and checked, here.

Loaded when the first agent is built: this is what brings in the plugin machinery and the tool schemas, so that
importing `Agent` costs next to nothing.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from locus.core.errors import ConfigError
from locus.core.frozen import EMPTY, FrozenDict
from locus.core.lazy import Lazy
from locus.core.protocols import AnyOf, has_all_of
from locus.core.state import AgentState
from locus.hooks.context import ConversationManager
from locus.hooks.manager import HookManager
from locus.hooks.sessions import CHECK_TOOLS, RUN_SESSION
from locus.journal.effects import InProcess, SystemClock
from locus.journal.store import JournalStore
from locus.loop.budget import agent_condition
from locus.loop.input import system_message
from locus.loop.router import Router
from locus.loop.runtime import AgentRuntime
from locus.models.protocol import ModelSettings, get_model
from locus.plugins.report import run_report
from locus.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from locus.models import output
    from locus.models.protocol import Model
    from locus.options import AgentOptions
    from locus.plugins import activation, discovery, manifest, providers
    from locus.plugins.activation import Activation
    from locus.plugins.discovery import Catalogue
else:
    output = Lazy("locus.models.output")
    # An agent that asks for no plugin does without all of this.
    activation = Lazy("locus.plugins.activation")
    discovery = Lazy("locus.plugins.discovery")
    manifest = Lazy("locus.plugins.manifest")
    providers = Lazy("locus.plugins.providers")


def build_runtime(options: AgentOptions) -> AgentRuntime:
    """Put an agent together.

    Raises:
        ConfigError: something is misspelled, missing or contradictory.
        PluginError: a plugin that was asked for cannot be used.
    """
    catalogue = options.catalogue
    if options.config is not None and options.config.allow is not None:
        catalogue = (discovery.Catalogue() if catalogue is None else catalogue).allowing(options.config.allow)
    manifests = [plugin for plugin in options.plugins if isinstance(plugin, manifest.Plugin)]
    if manifests:  # what they provide is found by its scheme, as with installed ones
        catalogue = (discovery.Catalogue() if catalogue is None else catalogue).with_manifests(manifests)
    configured: Mapping[str, Any] = EMPTY if options.config is None else options.config.agent
    active = _activation(options, catalogue)
    settings: dict[str, Any] = {} if options.config is None else {**options.config.plugin_settings}
    if active is None:
        manager = HookManager.build((), options.hooks)
    else:
        settings |= active.settings
        manager = HookManager.build(active.plugins, options.hooks, reports=active.reports)
    contributed = manager.contributed
    tools = ToolRegistry.of(options.tools)
    tools = tools.with_tools(*(c.value for c in contributed.get("locus_register_tools", ())))
    terminal = frozenset(options.terminal_tools or ())
    if not manager.table.impls(RUN_SESSION):  # a session brings tools when a run begins
        tools.require(terminal, "terminal tool")
        for check in manager.table.impls(CHECK_TOOLS):
            check.call(tools)
    policies = [c.value for c in contributed.get("locus_register_reflect_policies", ())]
    store = _store(options, configured, settings, catalogue)
    model = _model(options, configured, settings, catalogue)
    condition = agent_condition(options, model=model, prices=manager.table.prices, configured=configured)
    iterations = condition.bounds().iterations
    template = FrozenDict(
        agent_id=options.name,
        confidence_threshold=options.confidence_threshold,
        tool_loop_threshold=options.tool_loop_threshold,
        terminal_tools=terminal,
        token_budget=options.token_budget,
        max_iterations=iterations if iterations is not None else 0,
    )
    system = options.system_prompt if options.system_prompt is not None else configured.get("system_prompt")
    clock = options.clock or SystemClock()
    return AgentRuntime.wire(
        model=model,
        tools=tools,
        router=Router(condition, AnyOf(*policies) if policies else None),
        hooks=manager.table,
        plugins=manager.reports,
        versions=FrozenDict(run_report(manager.reports).versions),
        manager=_conversation_manager(options, configured, settings, catalogue),
        settings=options.model_settings or ModelSettings(),
        output=None if options.output_schema is None else output.output_schema(options.output_schema),
        max_revisions=options.max_revisions,
        retry_on=frozenset(options.retry_on),
        call_limits=options.limit_calls(configured),
        resolve=partial(get_model, catalogue=catalogue, settings=settings),
        clock=clock,
        effects=options.effects or InProcess(clock.now),
        store=store,
        version=options.version or "",
        system=system_message(system),
        template=template,
        blank=_blank(template),
    )


def _activation(options: AgentOptions, catalogue: Catalogue | None) -> Activation | None:
    config, keywords = options.config, options.plugin_keywords
    if config is None and not options.plugins and not keywords:
        return None  # nothing was asked for: the installed plugins are not even listed
    if config is None:
        wanted = activation.PluginRequest(plugins=tuple(options.plugins), keywords=keywords)
    else:
        wanted = config.plugin_request(plugins=tuple(options.plugins), keywords=keywords)
    return activation.activate(wanted, catalogue, environ=os.environ, options=options.keywords())


def _store(
    options: AgentOptions, configured: Mapping[str, Any], settings: Mapping[str, Any], catalogue: Catalogue | None
) -> JournalStore | None:
    given = options.checkpointer
    # A relative path in a program counts from the working directory, one in a file from the folder of the file.
    folder = options.config.folder if options.config is not None and given is None else None
    store: Any = given if given is not None else configured.get("checkpointer")
    if isinstance(store, str | os.PathLike):
        store = providers.provide("checkpointer", store, catalogue=catalogue, settings=settings, folder=folder)
    if store is not None and not has_all_of(store, JournalStore):
        raise ConfigError(
            f"checkpointer must have the methods of JournalStore, got {store!r}; wrap what saves and loads dicts "
            "in a SnapshotAdapter(save, load) of locus-kit"
        )
    made: JournalStore | None = store
    return made


def _conversation_manager(
    options: AgentOptions, configured: Mapping[str, Any], settings: Mapping[str, Any], catalogue: Catalogue | None
) -> ConversationManager | None:
    text = configured.get("conversation")
    if options.conversation_manager is not None or text in (None, "none"):
        return options.conversation_manager
    made: Any = providers.provide("conversation_manager", text, catalogue=catalogue, settings=settings)
    if not has_all_of(made, ConversationManager):
        raise ConfigError(f"[agent] conversation = {text!r}: expected a ConversationManager, the plugin made {made!r}")
    manager: ConversationManager = made
    return manager


def _model(
    options: AgentOptions, configured: Mapping[str, Any], settings: Mapping[str, Any], catalogue: Catalogue | None
) -> Model:
    chosen = options.model if options.model is not None else configured.get("model")
    if chosen is None:
        raise ConfigError(
            "no model: pass model='provider:model' (any installed provider) or an object with "
            "`name` and `async complete(request, on_chunk)`, or set [agent] model in locus.toml"
        )
    if isinstance(chosen, str):
        return get_model(chosen, catalogue=catalogue, settings=settings)
    if not callable(getattr(chosen, "complete", None)) or not isinstance(getattr(chosen, "name", None), str):
        raise ConfigError(f"model must have `name` and `async complete(request, on_chunk=None)`, got {chosen!r}")
    made: Model = chosen
    return made


def _blank(template: Mapping[str, Any]) -> AgentState:
    """What each new run starts from; a value that is out of range is reported here and not in the first run."""
    try:
        return AgentState(**template)
    except ValueError as e:
        raise ConfigError(str(e)) from e
