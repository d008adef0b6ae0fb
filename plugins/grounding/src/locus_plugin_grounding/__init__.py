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

_PACKAGE = "locus_plugin_grounding"

__getattr__, __dir__ = exports(
    __name__,
    {
        "WEIGHTS": f"{_PACKAGE}.partition",
        "BadVerdict": f"{_PACKAGE}.judge",
        "Decision": f"{_PACKAGE}.partition",
        "GroundingEvaluator": f"{_PACKAGE}.evaluator",
        "GroundingEvent": f"{_PACKAGE}.events",
        "GroundingFailedEvent": f"{_PACKAGE}.events",
        "GroundingHook": f"{_PACKAGE}.hooks",
        "GroundingReport": f"{_PACKAGE}.result",
        "GroundingResult": f"{_PACKAGE}.result",
        "GroundingSettings": f"{_PACKAGE}.settings",
        "Kind": f"{_PACKAGE}.partition",
        "Partition": f"{_PACKAGE}.partition",
        "TypedClaim": f"{_PACKAGE}.partition",
        "claims_of": f"{_PACKAGE}.sentences",
        "decide": f"{_PACKAGE}.partition",
        "typed_score": f"{_PACKAGE}.partition",
    },
)
