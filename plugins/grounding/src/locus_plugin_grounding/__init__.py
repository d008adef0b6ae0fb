"""Grounding for Locus agents: what an agent claims, scored against what its tools said.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_grounding.evaluator import GroundingEvaluator
    from locus_plugin_grounding.events import GroundingEvent, GroundingFailedEvent
    from locus_plugin_grounding.hooks import GroundingHook
    from locus_plugin_grounding.judge import BadVerdict
    from locus_plugin_grounding.partition import WEIGHTS, Decision, Kind, Partition, TypedClaim, decide, typed_score
    from locus_plugin_grounding.result import GroundingReport, GroundingResult
    from locus_plugin_grounding.sentences import claims_of
    from locus_plugin_grounding.settings import GroundingSettings

__all__ = [
    "WEIGHTS",
    "BadVerdict",
    "Decision",
    "GroundingEvaluator",
    "GroundingEvent",
    "GroundingFailedEvent",
    "GroundingHook",
    "GroundingReport",
    "GroundingResult",
    "GroundingSettings",
    "Kind",
    "Partition",
    "TypedClaim",
    "claims_of",
    "decide",
    "typed_score",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_grounding.evaluator": ("GroundingEvaluator",),
        "locus_plugin_grounding.events": ("GroundingEvent", "GroundingFailedEvent"),
        "locus_plugin_grounding.hooks": ("GroundingHook",),
        "locus_plugin_grounding.judge": ("BadVerdict",),
        "locus_plugin_grounding.partition": (
            "Decision",
            "Kind",
            "Partition",
            "TypedClaim",
            "WEIGHTS",
            "decide",
            "typed_score",
        ),
        "locus_plugin_grounding.result": ("GroundingReport", "GroundingResult"),
        "locus_plugin_grounding.sentences": ("claims_of",),
        "locus_plugin_grounding.settings": ("GroundingSettings",),
    },
)
