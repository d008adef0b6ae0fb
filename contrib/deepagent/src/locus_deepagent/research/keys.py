"""The keys of the state of a research workflow, and how their values are read.

A caller may start the graph with values of its own, so a node takes nothing for granted: what does not have the form
that it needs counts as missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "KEY_CAUSAL_CHAIN",
    "KEY_CAUSAL_CONFIDENCE",
    "KEY_CAUSAL_HYPOTHESIS",
    "KEY_CLAIMS",
    "KEY_EVIDENCE",
    "KEY_EXECUTE_PROMPT",
    "KEY_GROUNDING_FACTS",
    "KEY_GROUNDING_REASON",
    "KEY_GROUNDING_SCORE",
    "KEY_PROMPT",
    "KEY_REGENERATION_COUNT",
    "KEY_REPLAN_COUNT",
    "KEY_STRUCTURED_OUTPUT",
    "KEY_SUMMARY",
    "KEY_UNGROUNDED_CLAIMS",
    "read_count",
    "read_number",
    "read_text",
    "read_texts",
]

#: What is to be researched; the one value that a run needs.
KEY_PROMPT: Final = "prompt"
#: What the agent is asked in place of the prompt, as a replan writes it.
KEY_EXECUTE_PROMPT: Final = "execute_prompt"
#: What the tools said, a list of str; and at the end of each execution ``"[conclusion] ..."``, what the agent said.
KEY_EVIDENCE: Final = "evidence"
#: The same as ``{"id": "fact_000", "text": ..., "source": the tool}``.
KEY_GROUNDING_FACTS: Final = "grounding_facts"
#: A `CausalChain`, or None.
KEY_CAUSAL_CHAIN: Final = "causal_chain"
#: The label of the likeliest root cause, or ``""``.
KEY_CAUSAL_HYPOTHESIS: Final = "causal_hypothesis"
#: Of the hypothesis, 0.0 to 1.0.
KEY_CAUSAL_CONFIDENCE: Final = "causal_confidence"
#: The text that answers the prompt.
KEY_SUMMARY: Final = "summary"
#: What the summary claims: ``{"text": ..., "evidence": [n, ...]}``, where 1 is the first item of the evidence.
KEY_CLAIMS: Final = "claims"
#: The answer in the form of the output schema, as plain data; not there where the model did not give it.
KEY_STRUCTURED_OUTPUT: Final = "structured_output"
#: The share of the claims that evidence confirms, 0.0 to 1.0.
KEY_GROUNDING_SCORE: Final = "grounding_score"
#: Why nothing was scored: ``"no claims"``; else ``""``.
KEY_GROUNDING_REASON: Final = "grounding_reason"
#: The claims that no evidence confirms, a list of str.
KEY_UNGROUNDED_CLAIMS: Final = "ungrounded_claims"
#: How often the summary of this run was rewritten, and how often the research was taken up again.
KEY_REGENERATION_COUNT: Final = "regeneration_count"
KEY_REPLAN_COUNT: Final = "replan_count"


def read_text(values: Mapping[str, Any], key: str) -> str:
    """The text under a key; ``""`` where it is missing."""
    found = values.get(key)
    return found if isinstance(found, str) else ""


def read_texts(values: Mapping[str, Any], key: str) -> list[str]:
    """The texts of a list under a key, as a list of one's own."""
    found = values.get(key)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list | tuple) else []


def read_number(values: Mapping[str, Any], key: str) -> float:
    """The number under a key; 0 where it is missing."""
    found = values.get(key)
    is_number = isinstance(found, int | float) and not isinstance(found, bool) and not math.isnan(found)
    return found if is_number and found is not None else 0


def read_count(values: Mapping[str, Any], key: str) -> int:
    """The integer under a key; 0 where it is missing."""
    found = values.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
