"""The node `grounding_eval`: each claim of the summary is scored against the evidence that it cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from locus.models import get_model
from locus_deepagent.research.asking import ask
from locus_deepagent.research.evidence import confirming
from locus_deepagent.research.keys import (
    KEY_CLAIMS,
    KEY_EVIDENCE,
    KEY_GROUNDING_REASON,
    KEY_GROUNDING_SCORE,
    KEY_SUMMARY,
    KEY_UNGROUNDED_CLAIMS,
    read_text,
    read_texts,
)
from locus_deepagent.research.summaries import Claim, read_claims, read_given_claims, without_citations
from locus_plugin_grounding import GroundingEvaluator, GroundingSettings
from locus_plugin_grounding.judge import BadVerdict
from locus_plugin_grounding.sentences import claims_of
from locus_plugin_signals.sender import EV_RESEARCH_GROUNDING_EVALUATED, emit

if TYPE_CHECKING:
    from locus.models import Model
    from locus_plugin_graph import NodeContext
    from locus_plugin_grounding import GroundingResult

__all__ = ["RulesFirst", "make_grounding_eval_node"]


@frozen
class RulesFirst:
    """A judge of claims that is asked about those only that rules leave open, one a call.

    A small model says yes to claims that rules refute; and most claims need no call of it. Give it as the
    ``grounding_model`` of a research workflow, or to `make_grounding_eval_node`.

    Args:
        model: the judge, ``"provider:model"`` or a `Model`.
    """

    model: Model | str


def make_grounding_eval_node(model: Model | str | RulesFirst) -> Any:
    """A node that scores the summary.

    Reads `KEY_SUMMARY`, `KEY_CLAIMS` and `KEY_EVIDENCE`. Writes `KEY_GROUNDING_SCORE`, `KEY_UNGROUNDED_CLAIMS` and
    `KEY_GROUNDING_REASON`. The sentences of more than 10 characters are claims; those that cite the same evidence are
    judged in one call, against that evidence, the others against all of it. Where the judge's answer cannot be read,
    rules decide. Without a claim or without evidence the score is 0.0.

    Args:
        model: the judge, ``"provider:model"`` or a `Model`; or one that is asked about what rules leave open.

    Raises:
        ConfigError: the model is unknown.
    """
    if isinstance(model, RulesFirst):
        return _GroundingEval(get_model(model.model), GroundingEvaluator(GroundingSettings(judge="both")))
    return _GroundingEval(get_model(model), GroundingEvaluator())


@frozen
class _GroundingEval:
    model: Model
    evaluator: GroundingEvaluator

    async def __call__(self, values: Mapping[str, Any], ctx: NodeContext | None = None) -> dict[str, Any]:
        evidence = [each for each in read_texts(values, KEY_EVIDENCE) if each.strip()]
        claims = _claims(values, len(evidence))
        groups: dict[tuple[int, ...], list[str]] = {}
        most = self.evaluator.settings.max_claims
        for claim in claims[:most] if evidence else ():
            groups.setdefault(confirming(evidence, claim.evidence), []).append(claim.text)
        score, doubtful, requires_replan = 0.0, {claim.text for claim in claims[most:]}, not claims
        for places, texts in groups.items():
            found = await self._judge(texts, [evidence[i] for i in places], ctx)
            score += found.score * len(texts)
            doubtful.update(found.ungrounded_claims)
            requires_replan = requires_replan or found.requires_replan
        score = score / len(claims) if claims else 0.0
        ungrounded = [claim.text for claim in claims if claim.text in doubtful]
        if evidence:
            await emit(
                EV_RESEARCH_GROUNDING_EVALUATED,
                score=score,
                claims_evaluated=len(claims),
                ungrounded_count=len(ungrounded),
                requires_replan=requires_replan,
            )
        reason = "" if evidence else "no evidence"
        return {
            KEY_GROUNDING_SCORE: score,
            KEY_GROUNDING_REASON: reason if claims else "no claims",
            KEY_UNGROUNDED_CLAIMS: ungrounded,
        }

    async def _judge(self, claims: Sequence[str], evidence: Sequence[str], ctx: NodeContext | None) -> GroundingResult:
        asking = partial(ask, model=self.model, ctx=ctx)
        deadline = None if ctx is None else ctx.deadline
        try:
            return await self.evaluator.evaluate_with_llm(
                claims=claims, evidence=evidence, model=asking, deadline=deadline
            )
        except BadVerdict:
            return self.evaluator.evaluate(claims, evidence)


def _claims(values: Mapping[str, Any], count: int) -> tuple[Claim, ...]:
    """What is to be scored: the claims that the summary is made of, else its sentences."""
    summary = read_text(values, KEY_SUMMARY)
    given, said = read_given_claims(values.get(KEY_CLAIMS), count), without_citations(summary)
    if not given or not all(claim.text in said for claim in given):
        return read_claims(summary, count)
    return tuple(Claim(each, claim.evidence) for claim in given for each in claims_of(claim.text))
