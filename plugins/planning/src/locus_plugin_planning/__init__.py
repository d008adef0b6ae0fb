"""Planning: a plan first, its calls without asking the model for each, and a new plan where it fails.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_planning.errors import AnswerUnusable
    from locus_plugin_planning.events import PlanEndEvent, PlanEvent, ReplanEvent, StepEvent
    from locus_plugin_planning.hook import PlanningHook
    from locus_plugin_planning.plan import Plan, Step
    from locus_plugin_planning.reading import read_plan
    from locus_plugin_planning.report import PlanningReport
    from locus_plugin_planning.settings import PlanningSettings

__all__ = [
    "AnswerUnusable",
    "Plan",
    "PlanEndEvent",
    "PlanEvent",
    "PlanningHook",
    "PlanningReport",
    "PlanningSettings",
    "ReplanEvent",
    "Step",
    "StepEvent",
    "read_plan",
]

_MODULES = {
    "events": ("PlanEndEvent", "PlanEvent", "ReplanEvent", "StepEvent"),
    "hook": ("PlanningHook",),
    "plan": ("Plan", "Step"),
    "reading": ("read_plan",),
    "report": ("PlanningReport",),
    "settings": ("PlanningSettings",),
    "errors": ("AnswerUnusable",),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_planning.{module}": names for module, names in _MODULES.items()}
)
