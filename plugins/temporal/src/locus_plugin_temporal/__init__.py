"""Agents in Temporal workflows: the loop in the workflow, model calls and tools as activities.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_temporal.dev import DevServer
    from locus_plugin_temporal.errors import ActivityFailed, NotAnActivity, NotInWorkflow
    from locus_plugin_temporal.handover import Carried
    from locus_plugin_temporal.plugin import LocusPlugin
    from locus_plugin_temporal.running import carry, run
    from locus_plugin_temporal.workflow import AgentAnswer, AgentTask, AgentWorkflow

__all__ = [
    "ActivityFailed",
    "AgentAnswer",
    "AgentTask",
    "AgentWorkflow",
    "Carried",
    "DevServer",
    "LocusPlugin",
    "NotAnActivity",
    "NotInWorkflow",
    "carry",
    "run",
]

_MODULES = {
    "handover": ("Carried",),
    "dev": ("DevServer",),
    "errors": ("ActivityFailed", "NotAnActivity", "NotInWorkflow"),
    "plugin": ("LocusPlugin",),
    "running": ("carry", "run"),
    "workflow": ("AgentAnswer", "AgentTask", "AgentWorkflow"),
}

_HERE = "locus_plugin_temporal"
__getattr__, __dir__ = exports(__name__, {f"{_HERE}.{module}": names for module, names in _MODULES.items()})
