"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_NAMES = {
    "ALIASES": "aliases",
    "AgentLoopConfig": "definition",
    "Complete": "verdicts",
    "ConflictingVerdicts": "errors",
    "Continue": "verdicts",
    "Fail": "verdicts",
    "FailPermanent": "errors",
    "InvalidWorkflow": "errors",
    "NewWorkflow": "builder",
    "NoVerdict": "errors",
    "RetryPolicy": "definition",
    "StepBuilder": "builder",
    "StepDef": "definition",
    "StepEnded": "errors",
    "StepEvent": "events",
    "StepState": "machine",
    "StepTypeAgentLoop": "definition",
    "StepTypeNormal": "definition",
    "SyncTaskContext": "context",
    "TaskContext": "context",
    "TaskPayload": "payload",
    "Worker": "worker",
    "Workflow": "builder",
    "WorkflowDef": "definition",
    "WorkflowError": "errors",
    "WorkflowRun": "client",
    "cancel": "client",
    "retry": "client",
    "show": "client",
    "start": "client",
    "wait": "client",
}

plugin = Plugin(
    name="workflow",
    api=(1, 0),
    summary="Runs durable workflows of agent-loop steps over any store that is a queue.",
    provides={"commands": "locus_plugin_workflow.commands.registration"},
    compat_paths={f"locus.workflow:{name}": f"locus_plugin_workflow.{home}:{name}" for name, home in _NAMES.items()},
)
