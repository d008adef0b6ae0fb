"""`GroundingHook`: a pass in the Reflect node, and one on each final answer before it is accepted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
from attrs import evolve

from locus.core.errors import JournalError, LocusError
from locus.core.messages import Message, Role, plugin_message
from locus.core.state import AgentState
from locus.plugin import Accept, Event, Hook, Revise, StashKey, hookimpl
from locus_kit.reflect import EveryIterations
from locus_plugin_grounding.conversation import ConversationEvidence
from locus_plugin_grounding.evaluator import GroundingEvaluator
from locus_plugin_grounding.events import GroundingEvent, GroundingFailedEvent
from locus_plugin_grounding.feedback import HEADER, feedback, note
from locus_plugin_grounding.record import NAME, Outcome, Record
from locus_plugin_grounding.result import GroundingReport, GroundingResult
from locus_plugin_grounding.sentences import claims_of
from locus_plugin_grounding.settings import GroundingSettings

if TYPE_CHECKING:
    from locus.core.events import TerminateEvent
    from locus.loop.router import ReflectPolicy
    from locus.models import Model, ModelRequest, ModelResponse
    from locus.plugin import RunContext

__all__ = ["GroundingHook"]

_WITNESS: StashKey[ConversationEvidence] = StashKey("grounding.witness")
_NEWEST: StashKey[tuple[tuple[int, int, str], Outcome]] = StashKey("grounding.newest")
_REPORT: StashKey[GroundingReport] = StashKey("grounding.report")

#: How many errors a report keeps.
_ERRORS = 5


class GroundingHook(Hook):
    """Scores what an agent says against what its tools said.

    Args:
        settings: when and by whom; None = the defaults.
        model: the judge as an object, in place of ``settings.model``; it judges where ``settings.judge`` is
            not ``"rules"``.
    """

    name = NAME

    def __init__(self, settings: GroundingSettings | None = None, *, model: Model | None = None) -> None:
        self.settings = settings if settings is not None else GroundingSettings()
        self.evaluator = GroundingEvaluator(self.settings)
        self._model: Model | str | None = model if model is not None else self.settings.model

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own events."""
        return [GroundingEvent, GroundingFailedEvent]

    @hookimpl
    def locus_register_reflect_policies(self) -> list[ReflectPolicy]:
        """When to reflect."""
        return [] if self.settings.interval is None else [EveryIterations(self.settings.interval)]

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState | None:
        """Score the text that came with the model's last calls, whichever policy asked to reflect."""
        last = state.last_assistant
        claims = claims_of(last.text, plans=False) if last is not None else ()
        if not claims:
            return None
        outcome = await self._evaluate(claims, state, run, stage="reflect")
        if not outcome.sends_back or outcome.result is None:
            return None
        return state.with_message(plugin_message(NAME, note(outcome.result)))

    @hookimpl
    async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Accept | Revise:
        """Send an answer back that is not grounded, so many times at most."""
        if not self.settings.answers:
            return Accept()
        outcome = await self._of_answer(answer, len(state.messages), state, run)
        if not outcome.sends_back or outcome.result is None or Record.of(state).sent >= self.settings.revisions:
            return Accept()
        return Revise(feedback(outcome.result))

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Keep in the state what was found about an answer: a run that is resumed, or replayed, has no other memory.

        Where the review is on record and this process has not seen it, the pass is made again from the recorded answer
        of the judge.
        """
        new = await call_next(state)
        if node != "think" or not self.settings.answers or len(new.messages) == len(state.messages):
            return new
        *before, last = new.messages[-2:]
        if last.role is Role.ASSISTANT and not last.tool_calls and not new.pending_revision:
            outcome = await self._of_answer(last, len(new.messages), new, run)
            return Record.of(new).after(outcome, sent=False).into(new)
        if new.pending_revision and HEADER in last.text.splitlines() and before:
            outcome = await self._of_answer(before[0], len(new.messages) - 1, new, run)
            return Record.of(new).after(outcome, sent=True).into(new)
        return new

    def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
        """Report the verdict on the run's answer."""
        kept = Record.of(run.state)
        run.report(
            NAME,
            evolve(
                run.stash.get(_REPORT, GroundingReport()),
                verdict=kept.verdict,
                score=kept.score,
                ungrounded_claims=kept.ungrounded,
                revisions=kept.sent,
            ),
        )

    # -- passes -----------------------------------------------------------------------------------

    async def _of_answer(self, answer: Message, at: int, state: AgentState, run: RunContext) -> Outcome:
        key = (state.iteration, at, answer.text)
        known = run.stash.get(_NEWEST, None)
        if known is not None and known[0] == key:
            return known[1]
        outcome = await self._evaluate(answer.text, state, run, stage="answer")
        run.stash[_NEWEST] = (key, outcome)
        return outcome

    async def _evaluate(
        self, claims: str | tuple[str, ...], state: AgentState, run: RunContext, *, stage: str
    ) -> Outcome:
        if _WITNESS not in run.stash:
            run.stash[_WITNESS] = ConversationEvidence(state, max_chars=self.settings.max_chars)
        corpus = run.stash[_WITNESS].read(state)
        if not corpus.texts and not (self.settings.require_evidence and run.registry.specs):
            # Without tools there is nothing to compare an answer with.
            return Outcome(None, "no evidence")
        earlier = Record.of(state).contradicted if stage == "answer" else ()
        try:
            if self.settings.judge == "rules":
                result = self.evaluator.evaluate(claims, corpus, earlier=earlier)
            else:
                result = await self.evaluator.evaluate_with_llm(
                    claims=claims,
                    evidence=corpus,
                    model=_Asking(run, self._model),
                    earlier=earlier,
                    deadline=self._deadline(run),
                )
        except JournalError:
            raise  # no failure of the judge: this worker must not go on
        except LocusError as e:
            await _emit_failure(run, e, stage)
            return Outcome(None, "unchecked")
        await _emit_result(run, result, stage)
        return Outcome.of(result)

    def _deadline(self, run: RunContext) -> float | None:
        if self.settings.timeout is None:
            return run.deadline
        mine = anyio.current_time() + self.settings.timeout
        return mine if run.deadline is None else min(mine, run.deadline)


class _Asking:
    """Asks a model in the name of a run."""

    def __init__(self, run: RunContext, model: Model | str | None) -> None:
        self._run, self._model = run, model

    async def __call__(self, request: ModelRequest) -> ModelResponse:
        return await self._run.call_model(request, model=self._model, purpose=NAME)


async def _emit_result(run: RunContext, result: GroundingResult, stage: str) -> None:
    report = run.stash.get(_REPORT, GroundingReport())
    run.stash[_REPORT] = evolve(report, passes=report.passes + 1)
    await run.emit(
        GroundingEvent(
            score=result.score,
            claims_evaluated=len(result.claims),
            ungrounded_claims=result.ungrounded_claims,
            requires_replan=result.requires_replan,
            decision=result.decision.value,
            reason=result.reason,
            stage=stage,
        )
    )


async def _emit_failure(run: RunContext, error: LocusError, stage: str) -> None:
    report = run.stash.get(_REPORT, GroundingReport())
    told = f"{type(error).__name__}: {error}"
    run.stash[_REPORT] = evolve(report, failures=report.failures + 1, errors=(*report.errors, told)[-_ERRORS:])
    await run.emit(GroundingFailedEvent(error=str(error), error_type=type(error).__name__, stage=stage))
