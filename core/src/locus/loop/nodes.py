"""The four nodes: ``(state, run) -> state``. What they do to the world, they do through the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.directives import Cancel
from locus.core.errors import ModelError, StepFailed
from locus.core.events import MODEL_ERROR, ThinkEvent
from locus.core.frozen import maker
from locus.core.lazy import Lazy
from locus.core.messages import EMPTY_ANSWER, OUTPUT_INVALID, WITHHELD, Message, RawBlock, Usage, plugin_message
from locus.core.state import AgentState, ReasoningStep, not_run
from locus.hooks.dispatch import fold
from locus.hooks.review import review, view
from locus.models.faults import MISFIT, find_fault, send_back
from locus.tools.outcome import remember_for_thread

if TYPE_CHECKING:
    from locus.loop.context import SegmentContext
    from locus.models import output
    from locus.tools import dispatch
else:
    output = Lazy("locus.models.output")
    dispatch = Lazy("locus.tools.dispatch")

#: How often a hook's Retry may run one Think again.
MAX_THINK_RETRIES = 3

_reasoning_step = maker(ReasoningStep)


async def think(state: AgentState, run: SegmentContext, given: Message | None = None) -> AgentState:
    """Ask the model; the answer, its tokens and a reasoning step are added to the state.

    A final answer is shown to the reviewers before it counts. When the model fails and no hook asks for another
    try, the run ends with ``ModelError``. An answer that is given is taken in place of the model's.
    """
    before, final = state, None
    for attempt in range(MAX_THINK_RETRIES + 1):
        if run.uncharged is not None:  # what hooks have spent since
            before = run.with_charges(before)
        state, messages = before, before.messages
        if given is not None:
            message, usage, replayed, stop = given, Usage(), False, "stop"
        else:
            if (manager := run.runtime.manager) is not None:
                state, messages = await view(manager, before, run)
                state = run.with_charges(state)
            if run.over_budget(state):
                return _with_final(state, final)
            try:
                response, usage, replayed = await run.ask(messages, attempt)
            except (ModelError, StepFailed) as e:
                state = run.with_charges(state)
                if attempt < MAX_THINK_RETRIES and run.retries(attempt):
                    before = state
                    await run.emit_restart()
                    continue
                return _with_final(run.fail(state, MODEL_ERROR, e), final)
            message, stop = response.message, response.stop_reason
            if message.is_cut and not message.content:  # nothing of it had come, and the run ends
                return run.with_charges(state).with_usage(usage)
        calls = message.tool_calls
        thought = "" if calls is message.content else message.reasoning or message.text
        actions = tuple([c.name for c in calls])
        step = _reasoning_step(iteration=state.iteration, thought=thought, actions=actions)
        fault = "" if calls and stop == "tool_calls" else find_fault(message, stop)
        answered = state.with_answer(message, step, usage, fault)
        run.state = answered
        if run.has_listener(ThinkEvent):
            await run.emit(
                ThinkEvent(
                    reasoning=message.reasoning or None,
                    text=message.text,
                    tool_calls=calls,
                    hosted=[block for block in message.content if type(block) is RawBlock],
                    replayed=replayed,
                )
            )
        again = given is None and attempt < MAX_THINK_RETRIES and not run.halted
        if again and run.retries(attempt):
            # The answer is thrown away, its tokens are not. A final one counts after all when no other comes.
            before = state.with_usage(usage)
            final = None if calls else (message, step, Usage(), answered.answer_fault)
            await run.emit_restart()
            continue
        if (not calls or answered.answer_fault in WITHHELD) and not message.is_cut:
            return await _review(answered, message, run)
        return answered
    return state


def _with_final(state: AgentState, final: tuple[Message, ReasoningStep, Usage, str] | None) -> AgentState:
    return state if final is None else state.with_answer(*final)


async def _review(state: AgentState, answer: Message, run: SegmentContext) -> AgentState:
    """Show a final answer to the output schema and the reviewers; the first objection sends it back."""
    if run.output is not None and state.answer_fault in ("", EMPTY_ANSWER):
        try:
            run.output.parse(answer.text)
        except output.OutputError as e:
            state = _revise(state, MISFIT.format(e), run)
            if state.pending_revision:
                return state
            state = state.with_answer_fault(OUTPUT_INVALID, str(e))
    if (again := send_back(state, run.runtime.retry_on)) is not None:
        return again
    impls = run.runtime.hooks.impls("locus_review_answer")
    verdict = await review(impls, answer, state, run, run.health, run.hook_step) if impls else None
    state = run.with_charges(state)
    if isinstance(verdict, Cancel):
        run.cancel(verdict.reason)
    elif verdict is not None:
        state = _revise(state, verdict.feedback, run)
    return state


def _revise(state: AgentState, feedback: str, run: SegmentContext) -> AgentState:
    if state.revisions < run.runtime.max_revisions:
        return state.with_calls_closed(state.answer_fault).with_revision(plugin_message("review", feedback))
    run.report("review", f"the answer is kept after {state.revisions} revisions; still open: {feedback}")
    return state


async def execute(state: AgentState, run: SegmentContext) -> AgentState:
    """Run the calls of the last answer; results are added in call order.

    Raises:
        Suspended: a call asks a person.
    """
    calls = state.unanswered
    outcomes = await dispatch.execute_calls(state, calls, run)
    done = [o for o in outcomes if o is not None]
    messages = [
        outcome.message(call) if (outcome := outcomes[i]) is not None else not_run(call, run.stop_reason)
        for i, call in enumerate(calls)
    ]
    state = state.with_results(messages, [o.execution for o in done])
    return remember_for_thread(state, done, run.registry) if run.registry.remembers else state


async def reflect(state: AgentState, run: SegmentContext) -> AgentState:
    """Let every reflecting plugin fold the state, in order."""
    impls = run.runtime.hooks.impls("locus_reflect")
    return run.with_charges(await fold(impls, state, run, run.health)) if impls else state


async def terminate(state: AgentState, run: SegmentContext) -> AgentState:
    """Close the history: a call that was not run gets an error result that says why."""
    return state.with_calls_closed(run.stop_reason)
