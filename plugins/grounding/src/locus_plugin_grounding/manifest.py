"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

_WINDOW = "locus.reasoning.grounding"

plugin = Plugin(
    name="grounding",
    api=(1, 0),
    summary="Scores what an agent claims against what its tools said, and sends ungrounded answers back.",
    hooks=("locus_plugin_grounding.hooks:GroundingHook",),
    settings="locus_plugin_grounding.settings:GroundingSettings",
    compat_paths={
        f"{_WINDOW}:GroundingEvaluator": "locus_plugin_grounding.evaluator:GroundingEvaluator",
        f"{_WINDOW}:GroundingResult": "locus_plugin_grounding.result:GroundingResult",
        f"{_WINDOW}:GroundingEvent": "locus_plugin_grounding.events:GroundingEvent",
        f"{_WINDOW}:Partition": "locus_plugin_grounding.partition:Partition",
        f"{_WINDOW}:TypedClaim": "locus_plugin_grounding.partition:TypedClaim",
        f"{_WINDOW}:decide": "locus_plugin_grounding.partition:decide",
        f"{_WINDOW}:typed_score": "locus_plugin_grounding.partition:typed_score",
    },
    after=("reflexion", "causal", "guardrails"),
)
