"""An effect of a run as a value, for an engine that makes it happen in another process than the loop.

`Effects.run` gets a function, and a function cannot be sent. `describe_effect` says what it is to do; `perform_effect`
does that where an agent like the run's is at hand, with its wrappers, limits and prices; and `take_effect` lets the
loop go on as if it had happened beside it. Only calls of models and bodies of tools can be described: what else a run
makes a step of is a closure over its own process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio
from attrs import evolve

from locus.core import decode, decode_data, encode, encode_data
from locus.core.errors import ConfigError, ContextOverflow, ModelError, OutcomeUnknown
from locus.core.journal import Answered, Asked, Body, Outcome, StepId, entry_from_json, entry_to_json
from locus.core.labels import CLEAN, Label
from locus.core.messages import Usage
from locus.journal import InProcess, JournalHost, MemoryStore
from locus.loop import SegmentContext, as_current
from locus.models import ModelCall, ModelRequest, failed_call
from locus.plugin import Interrupt
from locus.tools import body_of, find_failure, prepare_body
from locus_kit.remote_effect import RemoteEffect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from locus.core.journal import Policy
    from locus.loop import AgentRuntime
    from locus.models import Model

__all__ = ["NotPerformed", "RemoteEffect", "describe_effect", "perform_effect", "take_effect"]


class NotPerformed(ConfigError):
    """The agent at hand is not like the run's: it has no such tool, or the tool takes other arguments."""


def describe_effect(step_id: StepId, fn: Callable[[], Awaitable[Any]]) -> RemoteEffect | None:
    """What an effect is to do.

    Args:
        step_id: what `Effects.run` gets.
        fn: the same.

    Returns:
        None where it can only be done in this process.
    """
    asked, entered = getattr(fn, "__self__", None), body_of(fn)
    if isinstance(asked, ModelCall):
        run, state = cast("SegmentContext", asked.run), cast("SegmentContext", asked.run).state
        request = evolve(asked.request, deadline=None, model=None)
        kind: dict[str, Any] = {"request": request, "model": asked.model.name}
    elif entered is not None:
        run, state = cast("SegmentContext", entered[1]), entered[0].state
        kind = {"tool": entered[0].call.name}
    else:
        return None
    host = run.host
    known: list[Body] = [each for asked, said in host.answers(step_id) for each in (asked, _answer_of(asked, said))]
    known += [step for step in host.steps if step.step_id.parent == step_id and isinstance(step, Outcome)]
    return RemoteEffect(
        agent=run.runtime.blank.agent_id or "",
        thread_id=run.thread_id,
        run_id=run.run_id,
        segment=host.segment,
        step_id=step_id,
        state=state,
        settings=run.settings,
        given=run.given,
        seconds_left=None if run.deadline is None else max(0.0, run.deadline - anyio.current_time()),
        known=tuple(known),
        **kind,
    )


def _answer_of(asked: Asked, said: Any) -> Answered:
    return Answered(run_id=asked.run_id, interrupt_id=asked.interrupt_id, answer=said)


# -- where it happens --------------------------------------------------------------------------------


class _Once(InProcess):
    """The steps of a body, which no journal records before the body ends."""

    def __init__(self, *, is_again: bool) -> None:
        super().__init__()
        self.is_again = is_again

    def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Awaitable[Any]:
        if self.is_again and policy == "once":
            raise OutcomeUnknown(str(step_id))
        return fn()


class _RemoteRun(SegmentContext):
    """The run as an effect sees it that happens apart from its loop."""

    is_again = False

    async def run_child(self, agent: Any, prompt: Any, budget: Any, step_id: StepId, *args: Any, **more: Any) -> Any:
        """Run a child within the effect: its journal ends with that."""
        if self.is_again:
            raise OutcomeUnknown(str(step_id))
        result = await super().run_child(agent, prompt, budget, step_id, *args, **more)
        if result.interrupts:
            raise ConfigError(
                f"the child run of step {step_id} asks a person, and nothing keeps it until there is an answer: it "
                "runs inside of a tool that runs apart from its loop; let this agent ask, in place of the child"
            )
        return result


async def perform_effect(
    effect: RemoteEffect,
    runtime: AgentRuntime,
    *,
    deps: Any = None,
    model: Model | None = None,
    is_again: bool = False,
) -> dict[str, Any]:
    """Make an effect happen, in any process.

    Args:
        effect: what is to happen.
        runtime: of an agent like the run's.
        deps: what the tool gets as ``ctx.deps``.
        model: whom to ask in place of the agent's own model.
        is_again: it may have been begun before. Steps of a body that may happen once, and child runs, are not begun
            again: what came of them is unknown.

    Returns:
        What `take_effect` takes, in JSON.

    Raises:
        NotPerformed: this agent cannot make it happen; nothing has happened.
        NotSerialisable: what came of it has no JSON form.
    """
    host = await JournalHost.open(MemoryStore(history=False), effect.thread_id, "", _Once(is_again=is_again))
    host.begin(effect.run_id)
    host.segment, host.state = effect.segment, effect.state
    for body in effect.known:
        host.enter(body)
    run = _RemoteRun(runtime, effect.thread_id, deps=deps, settings=effect.settings, given=effect.given)
    run.host, run.state, run.is_again = host, effect.state, is_again
    if effect.seconds_left is not None:
        run.deadline = anyio.current_time() + effect.seconds_left
    with as_current(run):
        came = await (_enter_body(effect, run) if effect.request is None else _ask(effect, effect.request, run, model))
    if run.uncharged is not None:
        came["charged"] = encode(run.uncharged)
    if run.cancelled is not None:
        came["cancelled"] = run.cancelled
    return came


async def _ask(effect: RemoteEffect, request: ModelRequest, run: SegmentContext, model: Model | None) -> dict[str, Any]:
    request = evolve(request, deadline=run.deadline)
    call = ModelCall(run, model or run.runtime.model, request, request.purpose)
    try:
        return {"value": encode_data(await call.step())}
    except BaseException as e:
        if find_failure(e) is None:
            raise
        error = failed_call(call.model, e)
        failure = {"type": type(error).__name__, "text": str(error), "retryable": error.retryable}
        return {"failed": failure, "usage": encode(call.usage)}


async def _enter_body(effect: RemoteEffect, run: SegmentContext) -> dict[str, Any]:
    try:
        c, body = prepare_body(effect.step_id, effect.state, run)
    except ConfigError as e:
        raise NotPerformed(str(e)) from e
    came: dict[str, Any] = {}
    try:
        came["value"] = encode_data(await body())
    except Interrupt as asking:
        kept = await run.host.store.peek(effect.thread_id)
        steps = [] if kept is None else [e.body for e in kept.entries if isinstance(e.body, Outcome)]
        asked = Asked(
            run_id=run.run_id,
            interrupt_id=c.question,
            step_id=c.at,
            question=asking.question,
            options=asking.options,
        )
        came |= {"asked": entry_to_json(asked), "steps": [entry_to_json(step) for step in steps]}
    except OutcomeUnknown:
        came["unknown"] = True
    if c.read is not CLEAN:
        came["read"] = encode(c.read)
    return came


# -- where the loop goes on --------------------------------------------------------------------------

_ERRORS = {"ContextOverflow": ContextOverflow}


async def take_effect(fn: Callable[[], Awaitable[Any]], came: Mapping[str, Any]) -> Any:
    """Let a run take over what came of an effect that happened elsewhere.

    Args:
        fn: what `Effects.run` got.
        came: what `perform_effect` returned.

    Returns:
        The result of the effect: what `Effects.run` returns.

    Raises:
        ModelError: the model failed.
        Interrupt: the body asks a person.
        OutcomeUnknown: of the body, or of a step in it.
    """
    asked, entered = getattr(fn, "__self__", None), body_of(fn)
    if isinstance(asked, ModelCall):
        asked.replayed = False
        if "failed" in came:
            failed, asked.usage = came["failed"], decode(came["usage"], Usage)
            raise _ERRORS.get(failed["type"], ModelError)(failed["text"], retryable=failed["retryable"])
        run = asked.run
    elif entered is not None:
        c, run = entered[0], cast("Any", entered[1])
        c.is_entered = True
        if "read" in came:
            c.read |= decode(came["read"], Label)
        if "asked" in came:
            for form in came["steps"]:  # with what they have spent: a run that is resumed is charged for them
                step = cast("Outcome", entry_from_json(form))
                await run.host.settle(step.step_id, step.value, step.digest, step.error)
            asking = cast("Asked", entry_from_json(came["asked"]))
            c.question = asking.interrupt_id
            raise Interrupt(asking.question, asking.options)
    else:
        raise TypeError(f"{fn!r:.80} is not an effect that describe_effect can describe")
    if "charged" in came:
        run.charge(decode(came["charged"], Usage))
    if "cancelled" in came:
        run.cancel(came["cancelled"])
    if "unknown" in came:
        raise OutcomeUnknown("" if entered is None else str(entered[0].at))
    return decode_data(came["value"])
