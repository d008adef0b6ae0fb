"""The termination algebra: when a run stops, as values that compose with ``&``, ``|`` and ``~``.

    (ToolCalled("submit") & ConfidenceMet(0.9)) | MaxIterations(10) | TokenLimit(15_000)

A condition is a pure function of the state. `TerminationCondition.explain` says how far each leaf is from
being satisfied, `TerminationCondition.bounds` which ceiling the whole tree guarantees.
"""

from __future__ import annotations

from locus.core._bounds import Bound, Bounds
from locus.core._composites import AndCondition, NotCondition, OrCondition
from locus.core._condition import (
    TerminationCondition,
    condition_from_json,
    condition_types,
    register_condition,
)
from locus.core._effective import DEFAULT_ITERATIONS, effective
from locus.core._explain import Explanation, Reading, Satisfied
from locus.core._goals import ConfidenceMet, CustomCondition, NoToolCalls, TextMention, ToolCalled
from locus.core._limits import CostLimit, Deadline, MaxIterations, TimeLimit, TokenLimit
from locus.core._progress import NoProgress, same_call

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
