"""`Agents`: what a worker has: its agents by name, and what its workflows have under way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from attrs import define, field

from locus.core.errors import ConfigError, UnknownName
from locus_plugin_temporal.ref import MODEL

if TYPE_CHECKING:
    from temporalio.workflow import ActivityConfig

    from locus import Agent
    from locus.models import Model
    from locus_kit.remote import RemoteEffect

__all__ = ["Agents"]


@define(eq=False)
class Agents:
    """The agents of a worker.

    Args:
        named: by name.
        models: those that plugins of the agents ask beside the agents' own, by name.
        options: of activities, by the name of the tool; those of models under ``"locus.model"``.
        deps: what tools get as ``ctx.deps``.
    """

    named: Mapping[str, Agent[Any, Any]]
    models: Mapping[str, Model] = field(factory=dict)
    options: Mapping[str, ActivityConfig] = field(factory=dict)
    deps: Any = None
    #: The effects under way in workflows of this process, by workflow, its run, and the effect's key; changed by the
    #: threads of the workflows and read by that of the activities, in one step each.
    effects: dict[tuple[str, str, str], RemoteEffect] = field(factory=dict, init=False, repr=False)
    #: The pure steps of plugins under way.
    steps: dict[str, Callable[[], Awaitable[Any]]] = field(factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        agents: Iterable[Agent[Any, Any]],
        models: Iterable[Model],
        options: Mapping[str, ActivityConfig],
        deps: Any,
    ) -> Agents:
        """Check agents and options.

        Raises:
            ConfigError: an agent has no name, or what cannot run in a workflow; or an option does not fit.
        """
        named: dict[str, Agent[Any, Any]] = {}
        for agent in agents:
            _check_agent(agent, named)
            named[str(agent.name)] = agent
        for name, given in options.items():
            _check_options(name, given, named)
        return cls(named, {model.name: model for model in models}, dict(options), deps)

    def get(self, name: str) -> Agent[Any, Any]:
        """The agent of a name.

        Raises:
            UnknownName: the worker has none.
        """
        found = self.named.get(name)
        if found is None:
            raise UnknownName("agent of this worker", name, self.named)
        return found

    def model(self, agent: str, name: str) -> Model:
        """The model of a name that an agent or one of its plugins asks.

        Raises:
            ConfigError: the worker has none.
        """
        runtime = self.get(agent).runtime
        if runtime.model.name == name:
            return runtime.model
        if name in self.models:
            return self.models[name]
        if runtime.resolve is None:
            raise ConfigError(f"agent {agent!r} asks the model {name!r}; add it: LocusPlugin(models=[...])")
        return runtime.resolve(name)


def _check_agent(agent: Agent[Any, Any], named: Mapping[str, object]) -> None:
    if not agent.name:
        raise ConfigError(f"{agent!r} has no name, by which workflows find it; build it with name=")
    if agent.name in named:
        raise ConfigError(f"two agents are named {agent.name!r}; workflows find them by their names")
    sessions = agent.runtime.hooks.impls("locus_run_session")
    if sessions:
        names = ", ".join(sorted({impl.plugin for impl in sessions}))
        raise ConfigError(
            f"agent {agent.name!r} has plugins that hold connections open while a run goes on, which a workflow "
            f"cannot: {names}; leave them out, or give the agent tools that connect by themselves"
        )


def _check_options(name: str, given: ActivityConfig, named: Mapping[str, Agent[Any, Any]]) -> None:
    found = [tool for agent in named.values() if (tool := agent.runtime.tools.get(name)) is not None]
    if name != MODEL and not found:
        raise UnknownName("tool in options", name, [MODEL, *(t for a in named.values() for t in a.runtime.tools.names)])
    policy = given.get("retry_policy")
    if policy is not None and policy.maximum_attempts != 1 and any(tool.effect == "once" for tool in found):
        raise ConfigError(
            f"the tool {name!r} may run once only, and its retry_policy lets it run again; leave that out, or declare "
            "the tool with effect='keyed' or effect='pure'"
        )
    if "start_to_close_timeout" in given and not isinstance(given["start_to_close_timeout"], timedelta):
        raise ConfigError(f"start_to_close_timeout of {name!r} must be a timedelta")
