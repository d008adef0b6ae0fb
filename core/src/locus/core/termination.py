"""The termination algebra: when a run stops, as values that compose with ``&``, ``|`` and ``~``.

    (ToolCalled("submit") & ConfidenceMet(0.9)) | MaxIterations(10) | TokenLimit(15_000)

A condition is a pure function of the state. `TerminationCondition.explain` says how far each leaf is from
being satisfied, `TerminationCondition.bounds` which ceiling the whole tree guarantees.
"""

from __future__ import annotations

from locus.core._answers import Bound, Bounds, Explanation, Reading, Satisfied
from locus.core._composites import AndCondition, NotCondition, OrCondition
from locus.core._condition import (
    TerminationCondition,
    condition_from_json,
    condition_types,
    register_condition,
)
from locus.core._leaves import (
    ConfidenceMet,
    CostLimit,
    CustomCondition,
    Deadline,
    MaxIterations,
    NoProgress,
    NoToolCalls,
    TextMention,
    TimeLimit,
    TokenLimit,
    ToolCalled,
    same_call,
)
from locus.core.budget import DEFAULT_ITERATIONS, effective

__all__ = [
    "DEFAULT_ITERATIONS",
    "AndCondition",
    "Bound",
    "Bounds",
    "ConfidenceMet",
    "CostLimit",
    "CustomCondition",
    "Deadline",
    "Explanation",
    "MaxIterations",
    "NoProgress",
    "NoToolCalls",
    "NotCondition",
    "OrCondition",
    "Reading",
    "Satisfied",
    "TerminationCondition",
    "TextMention",
    "TimeLimit",
    "TokenLimit",
    "ToolCalled",
    "condition_from_json",
    "condition_types",
    "effective",
    "register_condition",
    "same_call",
]
