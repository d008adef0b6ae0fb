"""How ``locus workflow`` prints runs and what happens to them."""

from __future__ import annotations

import json
import shlex
from typing import Any

from locus.core import encode_data, freeze
from locus.plugin import Lazy
from locus_plugin_workflow.client import WorkflowRun
from locus_plugin_workflow.events import StepEvent
from locus_plugin_workflow.machine import StepState

__all__ = ["print_event", "print_event_json", "print_run", "run_to_json"]

#: The command line is another distribution, which is there when a command is called.
cli: Any = Lazy("locus.cli")


def print_event_json(event: StepEvent) -> None:
    """Print an event as a line of JSON."""
    cli.print_json(
        {
            "type": event.type,
            "run_id": event.run_id,
            "workflow": event.workflow,
            "step": event.step,
            "iteration": event.iteration,
            "attempt": event.attempt,
            "at": event.at.isoformat(),
            "output": encode_data(event.output),
            "error": event.error,
            "reason": event.reason,
        },
        indent=None,
    )


def print_event(event: StepEvent) -> None:
    """Print an event as a line for people."""
    about = [event.run_id, event.step, f"iteration {event.iteration}" if event.step else "", event.error]
    text = cli.one_line("  ".join(filter(None, about)))
    cli.print_text(f"{event.at.astimezone():%H:%M:%S}  {event.type:<15} {text}\n")


def run_to_json(run: WorkflowRun) -> dict[str, Any]:
    """A run and its steps, as data."""
    return {
        "run_id": run.run_id,
        "workflow": run.workflow.name,
        "status": run.status,
        "input": encode_data(freeze(run.input)),
        "output": encode_data(freeze(run.output)),
        "error": run.error,
        "steps": {
            name: {
                "status": state.status,
                "iteration": state.iteration,
                "attempt": state.attempt,
                "not_before": state.not_before.isoformat() if state.not_before else None,
                "output": encode_data(state.output),
                "error": state.error,
                "reason": state.reason,
            }
            for name, state in run.steps.items()
        },
    }


def print_run(run: WorkflowRun) -> None:
    """Print a run and its steps for people."""
    cli.print_text(f"{cli.one_line(run.workflow.name)}  {run.status}\n")
    for step in run.workflow.steps:
        state = run.steps.get(step.name)
        if state is None:
            cli.print_text(f"  {cli.one_line(step.name)}: waiting for {', '.join(step.depends_on) or 'a worker'}\n")
            continue
        most = f" of {step.config.max_iterations}" if step.config else ""
        tried = f", attempt {state.attempt + 1}" if state.attempt else ""
        why = f": {cli.one_line(state.error)}" if state.error else ""
        name, how = cli.one_line(step.name), _describe(state)
        cli.print_text(f"  {name}: {how}, iteration {state.iteration + 1}{most}{tried}{why}\n")
    if run.status == "completed":
        cli.print_text(f"{json.dumps(encode_data(freeze(run.output)), ensure_ascii=False)}\n")
    elif run.status == "failed":
        failed = next((name for name, state in run.steps.items() if state.status == "failed"), "STEP")
        cli.say(f"begin it again where it failed: {shlex.join(['locus', 'workflow', 'retry', run.run_id, failed])}")


def _describe(state: StepState) -> str:
    """How a step is, and until when."""
    if state.not_before is None:
        return state.status
    how = "sleeps" if state.status == "running" else state.status
    return f"{how} until {state.not_before.astimezone():%Y-%m-%d %H:%M:%S %Z}"
