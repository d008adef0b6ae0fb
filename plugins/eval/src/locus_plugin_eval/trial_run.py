"""One trial: the turns of a case, answers to what the run asks, and the checks.

A trial is a node of a graph, and may be entered again after its process has died. Each turn is a step of the node:
what it came to is recorded once it has ended. Before that, the run of the agent is on its own thread, and the request
id makes the second call of a turn go on with the first one, or return its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, frozen

from locus import Agent, AgentResult, ModelCompleteEvent
from locus.core import encode_data
from locus.core.errors import JournalError, ModelError
from locus.core.journal import Asked
from locus.core.messages import Usage
from locus_kit.judging import clip
from locus_plugin_eval.checks import Check, CheckNotPossible, Judge, Subject
from locus_plugin_eval.judge import judge_request, read_verdict
from locus_plugin_eval.tape import TapeEffects, TrialTape
from locus_plugin_eval.trials import Call, CheckResult, Trial

if TYPE_CHECKING:
    from locus.core.events import Event
    from locus.journal import JournalStore
    from locus.models import Model
    from locus_plugin_eval.cases import Case

__all__ = ["TrialSetup", "run_trial"]

#: Characters of an answer and of a call's result that reports hold; checks see all of them.
_TEXT, _RESULT = 20_000, 2_000

#: The conditions that end a run before the agent is ready, and the reason of a cancel.
_LIMITS = frozenset(
    {"MaxIterations", "TokenLimit", "CostLimit", "TimeLimit", "Deadline", "ToolCallLimit", "NoProgress", "Cancelled"}
)

#: How often a turn may ask: an agent that asks again after each answer must not run for ever.
_MOST_QUESTIONS = 100


@frozen(kw_only=True)
class TrialSetup:
    """What all trials of an evaluation share.

    Args:
        agent: who is evaluated.
        store: where the runs of the trials are.
        deps: what tools get as ``ctx.deps``.
        judge: who judges, or None.
    """

    agent: Agent[Any, Any]
    store: JournalStore
    deps: Any = None
    judge: Model | str | None = None


async def run_trial(
    setup: TrialSetup, case: Case, repeat: int, thread_id: str, ctx: Any, tape: TrialTape | None
) -> Trial:
    """Run an agent on a case, and check what it did.

    Args:
        setup: what all trials share.
        case: the case.
        repeat: which of its repeats, from 1.
        thread_id: of the run.
        ctx: the `NodeContext`.
        tape: of this trial, or None.

    Raises:
        JournalError: what came of it could not be recorded; it says nothing about the agent.
    """
    agent = setup.agent
    live = _LiveCalls()
    if tape is not None:
        runtime = agent.runtime
        effects = TapeEffects(runtime.effects, lambda step: tape)
        agent = agent.with_effects(effects, clock=runtime.clock, model=runtime.model)
        agent = agent.with_listener("eval", live.hear) if tape.replays else agent
    agent = agent.with_checkpointer(setup.store)
    turns: list[dict[str, Any]] = []
    for n, prompt in enumerate(case.prompt, 1):
        answers = case.answers[sum(turn["answers"] for turn in turns) :]
        turn = partial(_take_turn, agent, prompt, f"turn-{n}", thread_id, answers, setup.deps, tape, live)
        # "pure": the request id makes a second call the same turn.
        turns.append(await ctx.step(f"turn {n}", turn, effect="pure"))
        if not turns[-1]["ended"]:
            break
    last = turns[-1]
    subject = Subject(
        prompt=case.prompt[len(turns) - 1],
        text=last["text"],
        calls=tuple(Call(**call) for turn in turns for call in turn["calls"]),
        stop_reason=last["stop_reason"],
        detail=last["detail"],
        is_stopped=last["stopped"],
        failure=last["failure"],
        question=last["question"],
    )
    missing = next((turn["missing"] for turn in turns if turn["missing"]), "")
    spent = _Spent()
    found = [await _check(each, subject, setup, ctx, spent) for each in case.all_checks] if not missing else []
    is_replay = tape is not None and tape.replays
    if is_replay and tape is not None and tape.misses and not missing:
        missing = tape.misses[0]  # a judge's
    return Trial(
        case=case.id,
        repeat=repeat,
        checks=tuple(found),
        text=clip(subject.text, _TEXT),
        calls=tuple(evolve(call, result=call.result and clip(call.result, _RESULT)) for call in subject.calls),
        stop_reason=subject.stop_reason,
        iterations=sum(turn["iterations"] for turn in turns),
        tokens=sum(turn["tokens"] for turn in turns),
        cost=_sum([turn["cost"] for turn in turns]),
        seconds=None if is_replay else sum(turn["seconds"] for turn in turns),
        judge_tokens=spent.usage.total_tokens,
        judge_cost=spent.usage.cost,
        missing=missing,
        thread=thread_id,
    )


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


class _LiveCalls:
    """Counts calls of models that went by the tape: those of runs that a tool has started."""

    def __init__(self) -> None:
        self.count = 0

    def hear(self, event: Event) -> None:
        self.count += isinstance(event, ModelCompleteEvent) and event.parent_run_id is not None and not event.replayed


async def _take_turn(
    agent: Agent[Any, Any],
    prompt: str,
    request_id: str,
    thread_id: str,
    answers: Sequence[str],
    deps: Any,
    tape: TrialTape | None,
    live: _LiveCalls,
) -> dict[str, Any]:
    """One turn of the user, with the answers to what it asks; plain data, to be recorded."""
    given, result, failure = 0, None, ""
    try:
        result = await agent.run(prompt, thread_id=thread_id, request_id=request_id, deps=deps)
        while result.interrupts and given + len(result.interrupts) <= min(len(answers), _MOST_QUESTIONS):
            asked = [each.interrupt_id for each in _sort_questions(result)]
            said = dict(zip(asked, answers[given:], strict=False))
            given += len(said)
            result = await agent.resume(thread_id, said, deps=deps)
    except JournalError:
        raise
    except Exception as e:  # noqa: BLE001  whatever an agent raises is what came of the trial
        failure = f"{type(e).__name__}: {e}"
    if result is not None and result.failed:
        failure = f"{result.stop_reason}: {result.error or result.detail}"
    elif result is not None and (lost := [each for each in result.state.tool_executions if each.outcome_unknown]):
        # The model has read that: what it did then says nothing about the agent.
        failure = f"the process died while {lost[0].tool_name!r} ran, and what came of it is unknown; run it again"
    missing = tape.misses[0] if tape is not None and tape.misses else ""
    if live.count and not missing:
        missing = f"{live.count} calls of models by runs that tools have started are not on the tape"
    return _describe_turn(result, given) | {"failure": failure, "missing": missing}


def _sort_questions(result: AgentResult[Any]) -> list[Asked]:
    """What a run asks, in the order of the calls; calls that run side by side ask in any order."""
    return sorted(result.interrupts, key=lambda asked: (asked.step_id.root.iteration, asked.step_id.root.ordinal))


def _describe_turn(result: AgentResult[Any] | None, answers: int) -> dict[str, Any]:
    if result is None:
        said = {"text": "", "calls": [], "stop_reason": "", "detail": "", "question": "", "answers": answers}
        spent = {"iterations": 0, "tokens": 0, "cost": None, "seconds": 0.0}
        return {**said, **spent, "ended": False, "stopped": False}
    calls = [
        {
            "name": done.tool_name,
            "arguments": encode_data(done.arguments),
            "result": done.result,
            "error": done.error,
        }
        for done in result.state.tool_executions
    ]
    return {
        "text": result.text,
        "calls": calls,
        "stop_reason": result.stop_reason,
        "detail": result.detail,
        "question": _sort_questions(result)[0].question if result.interrupts else "",
        "iterations": result.iterations,
        "tokens": result.usage.total_tokens,
        "cost": result.cost,
        "seconds": result.state.active_seconds,
        "answers": answers,
        "ended": not result.failed and not result.is_open,
        "stopped": result.is_open or not _LIMITS.isdisjoint(result.satisfied),
    }


# -- checks ---------------------------------------------------------------------------------------


@define
class _Spent:
    usage: Usage = Usage()


async def _check(check: Check, subject: Subject, setup: TrialSetup, ctx: Any, spent: _Spent) -> CheckResult:
    status, detail = "passed", ""
    try:
        detail = (
            await _ask(check, subject, setup, ctx, spent) if isinstance(check, Judge) else check.find_fault(subject)
        )
        status = "failed" if detail else "passed"
    except CheckNotPossible as e:
        status, detail = "error", str(e)
    return CheckResult(kind=check.kind, check=str(check), status=status, detail=detail)  # type: ignore[arg-type]


async def _ask(check: Judge, subject: Subject, setup: TrialSetup, ctx: Any, spent: _Spent) -> str:
    if subject.failure or not subject.text.strip():
        return "there is no answer to judge"
    try:
        response = await ctx.call_model(judge_request(check, subject), model=setup.judge, purpose="eval.judge")
    except ModelError as e:
        raise CheckNotPossible(f"the judge failed: {e}") from e
    spent.usage += response.usage
    return read_verdict(response.message.text)
