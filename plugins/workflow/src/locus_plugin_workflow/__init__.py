"""Durable workflows: steps that iterate until a handler or a bound ends them, over any store that is a queue.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_workflow.aliases import ALIASES
    from locus_plugin_workflow.builder import NewWorkflow, StepBuilder, Workflow
    from locus_plugin_workflow.client import WorkflowRun, cancel, retry, show, start, wait
    from locus_plugin_workflow.context import SyncTaskContext, TaskContext
    from locus_plugin_workflow.definition import (
        AgentLoopConfig,
        RetryPolicy,
        StepDef,
        StepTypeAgentLoop,
        StepTypeNormal,
        WorkflowDef,
    )
    from locus_plugin_workflow.errors import (
        ConflictingVerdicts,
        FailPermanent,
        InvalidWorkflow,
        NoVerdict,
        StepEnded,
        WorkflowError,
    )
    from locus_plugin_workflow.events import StepEvent
    from locus_plugin_workflow.machine import StepState
    from locus_plugin_workflow.payload import TaskPayload
    from locus_plugin_workflow.verdicts import Complete, Continue, Fail
    from locus_plugin_workflow.worker import Worker

__all__ = [
    "ALIASES",
    "AgentLoopConfig",
    "Complete",
    "ConflictingVerdicts",
    "Continue",
    "Fail",
    "FailPermanent",
    "InvalidWorkflow",
    "NewWorkflow",
    "NoVerdict",
    "RetryPolicy",
    "StepBuilder",
    "StepDef",
    "StepEnded",
    "StepEvent",
    "StepState",
    "StepTypeAgentLoop",
    "StepTypeNormal",
    "SyncTaskContext",
    "TaskContext",
    "TaskPayload",
    "Worker",
    "Workflow",
    "WorkflowDef",
    "WorkflowError",
    "WorkflowRun",
    "cancel",
    "retry",
    "show",
    "start",
    "wait",
]

_MODULES = {
    "aliases": ("ALIASES",),
    "builder": (
        "NewWorkflow",
        "StepBuilder",
        "Workflow",
    ),
    "client": (
        "WorkflowRun",
        "cancel",
        "retry",
        "show",
        "start",
        "wait",
    ),
    "context": (
        "SyncTaskContext",
        "TaskContext",
    ),
    "definition": (
        "AgentLoopConfig",
        "RetryPolicy",
        "StepDef",
        "StepTypeAgentLoop",
        "StepTypeNormal",
        "WorkflowDef",
    ),
    "errors": (
        "ConflictingVerdicts",
        "FailPermanent",
        "InvalidWorkflow",
        "NoVerdict",
        "StepEnded",
        "WorkflowError",
    ),
    "events": ("StepEvent",),
    "machine": ("StepState",),
    "payload": ("TaskPayload",),
    "verdicts": (
        "Complete",
        "Continue",
        "Fail",
    ),
    "worker": ("Worker",),
}

_HERE = "locus_plugin_workflow"
__getattr__, __dir__ = exports(__name__, {f"{_HERE}.{module}": names for module, names in _MODULES.items()})
