"""`LocusPlugin`: agents for a client of Temporal and its workers."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from temporalio.plugin import SimplePlugin
from temporalio.worker import ExecuteWorkflowInput, Interceptor, WorkflowInboundInterceptor, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from locus.models import Model
from locus_plugin_temporal.activities import Activities
from locus_plugin_temporal.agents import Agents
from locus_plugin_temporal.converter import with_locus_values
from locus_plugin_temporal.session import Session, enter_session
from locus_plugin_temporal.workflow import AgentWorkflow

if TYPE_CHECKING:
    from temporalio.worker import WorkflowInterceptorClassInput
    from temporalio.workflow import ActivityConfig

    from locus import Agent

__all__ = ["LocusPlugin"]

#: What the loop is made of, beside Locus: imported once, and not again for each workflow. Nothing of it keeps what one
#: workflow does where another one would find it.
_LIBRARIES = (
    "anyio",
    "attr",
    "attrs",
    "cattrs",
    "docstring_parser",
    "importlib_metadata",
    "msgspec",
    "pluggy",
    "sniffio",
)


class LocusPlugin(SimplePlugin):
    """Agents for ``Client.connect(..., plugins=[...])``; a `Worker` and a `Replayer` take it as well.

    A worker of that client gets the activities, the workflow ``locus.AgentWorkflow``, and what `run` needs in the
    workflows of your own. Its sandbox stays as it is, but for Locus and the libraries that it is made of.

    Args:
        agents: each with a name, by which workflows find it. All workers of a task queue need the same.
        models: those that plugins of the agents ask beside the agents' own, where they are given as objects.
        options: of activities, by the name of the tool; ``"locus.model"`` for the models.
        deps: what tools get as ``ctx.deps``.

    Raises:
        ConfigError: an agent cannot run in a workflow, or an option does not fit its tool.
    """

    def __init__(
        self,
        agents: Iterable[Agent[Any, Any]],
        *,
        models: Iterable[Model] = (),
        options: Mapping[str, ActivityConfig] | None = None,
        deps: Any = None,
    ) -> None:
        self.agents = Agents.of(agents, models, options or {}, deps)
        super().__init__(
            "locus.LocusPlugin",
            data_converter=with_locus_values,
            interceptors=[_Interceptor(self.agents)],
            activities=Activities(self.agents).all,
            workflows=_with_agent_workflow,
            workflow_runner=_let_locus_through,
        )


def _with_agent_workflow(given: Sequence[type] | None) -> Sequence[type]:
    return [*(given or ()), *(() if AgentWorkflow in (given or ()) else (AgentWorkflow,))]


def _let_locus_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    """The runner with Locus passed through its sandbox, where it has one."""
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner or SandboxedWorkflowRunner()
    tops = {name.partition(".")[0] for name in sys.modules}
    ours = {name for name in tops if name == "locus" or name.startswith("locus_")}
    restrictions = runner.restrictions.with_passthrough_modules(*ours, *_LIBRARIES)
    return dataclasses.replace(runner, restrictions=restrictions)


class _Interceptor(Interceptor):
    """Lets the workflows of a worker find its agents."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def workflow_interceptor_class(self, _: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        agents = self._agents

        class Inbound(WorkflowInboundInterceptor):
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  # Temporal's name
                enter_session(partial(Session, agents))
                return await self.next.execute_workflow(input)

        return Inbound
