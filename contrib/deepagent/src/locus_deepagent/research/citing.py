"""Corrects the citations of a draft: a claim must cite evidence that supports it.

A small model often knows what the evidence says, but not which piece says it: it cites the search results for what the
page says. Rules find the right piece without a model call. A claim that no piece supports is left as it is, and judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from locus_deepagent.research.evidence import CONCLUSION, confirming
from locus_deepagent.research.summaries import Claim
from locus_plugin_grounding import GroundingEvaluator

__all__ = ["correct_citations"]


def correct_citations(claims: Sequence[Claim], evidence: Sequence[str]) -> tuple[Claim, ...]:
    """The claims; one that its citations do not support cites the first piece that supports it alone, if any does.

    Args:
        claims: of a draft.
        evidence: the texts; what the agent concluded confirms nothing.
    """
    rules, found = GroundingEvaluator(), list(claims)
    texts = [claim.text for claim in claims]
    is_open = [not _is_confirmed(rules, claim, evidence) for claim in claims]
    for number, text in enumerate(evidence, 1):
        if not any(is_open):
            break
        if text.startswith(CONCLUSION) or not text.strip():
            continue
        refuted = set(rules.evaluate(texts, [text]).ungrounded_claims)
        for i, claim in enumerate(claims):
            if is_open[i] and claim.text not in refuted:
                found[i], is_open[i] = evolve(claim, evidence=(number,)), False
    return tuple(found)


def _is_confirmed(rules: GroundingEvaluator, claim: Claim, evidence: Sequence[str]) -> bool:
    if not claim.evidence:
        return False
    pieces = [evidence[i] for i in confirming(evidence, claim.evidence)]
    return not rules.evaluate([claim.text], pieces).ungrounded_claims
