"""`GroundingEvaluator`: scores claims, by rules or with a judge, in the simple or the typed form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from locus.models import Model, ModelRequest, ModelResponse
from locus_plugin_grounding.evidence import Corpus
from locus_plugin_grounding.judge import (
    BadVerdict,
    Grade,
    judge_request,
    question_request,
    read_answer,
    read_findings,
    read_grade,
    read_scores,
)
from locus_plugin_grounding.partition import Decision, Kind, Partition, TypedClaim, decide, typed_score
from locus_plugin_grounding.result import NO_CLAIMS, GroundingResult
from locus_plugin_grounding.rules import Finding, Standing, corrects, find, names_of
from locus_plugin_grounding.sentences import claims_of
from locus_plugin_grounding.settings import GroundingSettings

if TYPE_CHECKING:
    Ask = Callable[[ModelRequest], Awaitable[ModelResponse]]

__all__ = ["GroundingEvaluator"]

#: The score of one claim from which a judge's number counts as grounded.
_CONFIRMED = 0.5


class GroundingEvaluator:
    """Scores claims against evidence.

    Args:
        settings: form, thresholds and sizes; None = the defaults.
    """

    def __init__(self, settings: GroundingSettings | None = None) -> None:
        self.settings = settings if settings is not None else GroundingSettings()

    def evaluate(
        self,
        claims: str | Sequence[str],
        evidence: Iterable[str] | Corpus,
        *,
        question: str = "",
        earlier: Iterable[TypedClaim] = (),
    ) -> GroundingResult:
        """Score claims by rules; no model is asked.

        Args:
            claims: a text, whose sentences are its claims, or the claims.
            evidence: what tools said.
            question: what the user asked: to repeat it confirms nothing.
            earlier: contradicted claims of earlier answers, which this one must correct (typed form).
        """
        given, beyond = self._claims(claims)
        if not given:
            return self._without_claims(earlier)
        return self._result(given, self._find(given, self._corpus(evidence, question)), beyond, earlier)

    def _find(self, claims: Iterable[str], corpus: Corpus) -> list[Finding]:
        findings, before = [], ""
        for claim in claims:
            findings.append(find(claim, corpus, overlap=self.settings.overlap, before=before))
            before = claim if names_of(claim) else before
        return findings

    async def evaluate_with_llm(
        self,
        *,
        claims: str | Sequence[str],
        evidence: Iterable[str] | Corpus,
        model: Model | Ask,
        earlier: Iterable[TypedClaim] = (),
        deadline: float | None = None,
    ) -> GroundingResult:
        """Score claims with a judge: one call for all of them, none without claims.

        A single claim is asked about in a shorter form, which small models judge better.
        Where the setting ``judge`` is ``"both"``: one call for each claim that the rules neither confirm nor refute.

        Args:
            claims: a text, whose sentences are its claims, or the claims.
            evidence: what tools said, oldest first.
            model: the judge, or a function that asks one: in a run, one that calls ``run.call_model``.
            earlier: contradicted claims of earlier answers, which this one must correct (typed form).
            deadline: of the call, on ``anyio.current_time``.

        Raises:
            BadVerdict: the answer is not exactly what was asked for.
            ModelError: the model failed.
        """
        given, beyond = self._claims(claims)
        if not given:
            return self._without_claims(earlier)
        corpus = self._corpus(evidence)
        settings, shown = self.settings, [text for text in corpus.texts if text.strip()]
        if not shown:
            return self.evaluate(given + beyond, (), earlier=earlier)  # nothing to compare with, so no judge is asked
        if settings.judge == "both":
            findings = [
                await self._ask(claim, shown, model, deadline) if found.open else found
                for claim, found in zip(given, self._find(given, corpus), strict=True)
            ]
            return self._result(given, findings, beyond, earlier)
        if len(given) == 1 and not settings.typed:
            return self._grade(given, [read_grade(await self._question(given[0], shown, model, deadline))], beyond)
        request = judge_request(
            given,
            shown,
            typed=settings.typed,
            max_evidence=settings.max_evidence,
            max_tokens=settings.max_tokens,
            deadline=deadline,
        )
        text = await _answer(request, model)
        if settings.typed:
            return self._result(given, read_findings(text, len(given)), beyond, earlier)
        return self._grade(given, read_scores(text, len(given)), beyond)

    def _claims(self, claims: str | Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        given = claims_of(claims) if isinstance(claims, str) else tuple(claims)
        most = self.settings.max_claims
        return given[:most], given[most:]

    async def _ask(self, claim: str, shown: Sequence[str], model: Model | Ask, deadline: float | None) -> Finding:
        said = read_answer(await self._question(claim, shown, model, deadline))
        return Finding(Standing.GROUNDED if said else Standing.UNGROUNDED, Kind.INFERENCE)

    async def _question(self, claim: str, shown: Sequence[str], model: Model | Ask, deadline: float | None) -> str:
        settings = self.settings
        request = question_request(
            claim, shown, max_evidence=settings.max_evidence, max_tokens=settings.max_tokens, deadline=deadline
        )
        return await _answer(request, model)

    def _corpus(self, evidence: Iterable[str] | Corpus, question: str = "") -> Corpus:
        if isinstance(evidence, Corpus):
            return evidence
        corpus = Corpus(question, max_chars=self.settings.max_chars)
        for text in evidence:
            corpus.add(text)
        return corpus

    def _without_claims(self, earlier: Iterable[TypedClaim]) -> GroundingResult:
        if self.settings.typed and (held := tuple(earlier)):
            # Saying nothing more is not a correction.
            return self._decide(Partition().after(held), (), ())
        return GroundingResult(score=0.0, reason=NO_CLAIMS)

    def _grade(self, claims: tuple[str, ...], grades: Sequence[Grade], beyond: tuple[str, ...]) -> GroundingResult:
        score = sum(grade.score for grade in grades) / (len(claims) + len(beyond))
        ungrounded = (*(c for c, g in zip(claims, grades, strict=True) if g.score < _CONFIRMED), *beyond)
        return GroundingResult(
            score=score,
            claims=(*claims, *beyond),
            ungrounded_claims=ungrounded,
            decision=Decision.REPLAN if score < self.settings.threshold else Decision.PROCEED,
        )

    def _result(
        self,
        claims: tuple[str, ...],
        findings: Sequence[Finding],
        beyond: tuple[str, ...],
        earlier: Iterable[TypedClaim],
    ) -> GroundingResult:
        by: dict[Standing, list[TypedClaim]] = {standing: [] for standing in Standing}
        for claim, finding in zip(claims, findings, strict=True):
            by[finding.standing].append(TypedClaim(claim, finding.kind))
        by[Standing.UNGROUNDED] += [TypedClaim(claim, Kind.INFERENCE) for claim in beyond]
        if self.settings.typed:
            partition = Partition(**{standing.value: group for standing, group in by.items()})
            return self._decide(partition.after(earlier, corrects), claims, beyond)
        contradicted = tuple(c.text for c in by[Standing.CONTRADICTED])
        doubtful = {c.text for c in by[Standing.UNGROUNDED]} | set(contradicted)
        every = (*claims, *beyond)
        held = len(by[Standing.GROUNDED]) + len(by[Standing.COMPLEMENTARY])
        score = held / len(every)
        return GroundingResult(
            score=score,
            claims=every,
            ungrounded_claims=tuple(c for c in every if c in doubtful),
            contradicted_claims=contradicted,
            decision=Decision.REPLAN if score < self.settings.threshold or contradicted else Decision.PROCEED,
        )

    def _decide(self, partition: Partition, claims: tuple[str, ...], beyond: tuple[str, ...]) -> GroundingResult:
        settings = self.settings
        score = typed_score(partition, penalty=settings.penalty)
        return GroundingResult(
            score=score,
            claims=(*claims, *beyond),
            ungrounded_claims=tuple(c.text for c in (*partition.ungrounded, *partition.contradicted)),
            contradicted_claims=tuple(c.text for c in partition.contradicted),
            decision=decide(
                score, contradicted=partition.contradicted, proceed=settings.proceed, threshold=settings.threshold
            ),
            partition=partition,
        )


async def _answer(request: ModelRequest, model: Model | Ask) -> str:
    response = await (model.complete(request) if isinstance(model, Model) else model(request))
    if response.tool_calls:
        raise BadVerdict("the judge called a tool, expected text")
    return response.message.text
