"""The names that workflows have in Go, beside the names that they have here: one table.

The classes have both. The documentation prefers the Python names; a program translated line by line has the others.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

__all__ = ["ALIASES"]

#: Other name -> Python name, each below what has it.
ALIASES: Final = MappingProxyType(
    {
        "NewWorkflow": "Workflow",
        "Workflow.AgentLoop": "Workflow.agent_loop",
        "Workflow.Step": "Workflow.step",
        "Workflow.Build": "Workflow.build",
        "StepBuilder.WithMaxIterations": "StepBuilder.with_max_iterations",
        "StepBuilder.WithMaxDuration": "StepBuilder.with_max_duration",
        "StepBuilder.WithLoopDelay": "StepBuilder.with_loop_delay",
        "StepBuilder.WithTimeout": "StepBuilder.with_timeout",
        "StepBuilder.WithRetry": "StepBuilder.with_retry",
        "StepBuilder.DependsOn": "StepBuilder.depends_on",
        "StepBuilder.AgentLoop": "StepBuilder.agent_loop",
        "StepBuilder.Step": "StepBuilder.step",
        "StepBuilder.Build": "StepBuilder.build",
        "StepDef.Name": "StepDef.name",
        "StepDef.Type": "StepDef.type",
        "StepDef.Config": "StepDef.config",
        "StepDef.Timeout": "StepDef.timeout",
        "TaskPayload.RunID": "TaskPayload.run_id",
        "TaskPayload.Step": "TaskPayload.step",
        "TaskPayload.Iteration": "TaskPayload.iteration",
        "TaskPayload.Attempt": "TaskPayload.attempt",
        "TaskPayload.Input": "TaskPayload.input",
        "Worker.Handle": "Worker.handle",
        "TaskContext.Input": "TaskContext.input",
        "TaskContext.LoadCheckpoint": "TaskContext.load_checkpoint",
        "TaskContext.Checkpoint": "TaskContext.checkpoint",
        "TaskContext.Continue": "TaskContext.continue_",
        "TaskContext.Complete": "TaskContext.complete",
        "TaskContext.Fail": "TaskContext.fail",
        "TaskContext.FailPermanent": "TaskContext.fail_permanent",
    }
)
