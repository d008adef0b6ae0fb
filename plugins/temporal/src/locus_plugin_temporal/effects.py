"""`WorkflowEffects`: the effects of a run in a workflow, each an activity; and the workflow's time.

The loop itself is the kernel's and runs in the workflow. What it decides is decided again when the workflow is
replayed; what an activity returned comes from the history. The order is the kernel's: a run's journal lives in the
memory of the workflow, and a replay makes it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from temporalio import exceptions, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from locus.core import encode_data
from locus.core.errors import ModelError, OutcomeUnknown, StepMismatch
from locus.core.fingerprint import bare
from locus.core.journal import StepId
from locus.core.messages import Message, Role, Usage
from locus.models import ModelCallResult, ModelResponse, estimate_tokens
from locus.plugin import current_run
from locus_kit.remote import RemoteEffect, describe_effect, take_effect
from locus_plugin_temporal.errors import ActivityFailed, NotAnActivity
from locus_plugin_temporal.ref import LOCAL, MODEL, TOOL, EffectRef

if TYPE_CHECKING:
    from locus.core.journal import Policy
    from locus.loop import SegmentContext
    from locus_plugin_temporal.session import Session

__all__ = ["NOT_BEGUN", "WorkflowClock", "WorkflowEffects"]

#: The type of the failure of an activity that has not begun its effect.
NOT_BEGUN = "locus.NotBegun"

#: How often an effect is tried whose worker dies, or has not what it takes; the kernel gives a run up as often.
ATTEMPTS = 5

#: Seconds by which an activity may outlast the kernel's own limit, which says more precisely what took too long.
_MARGIN = 30.0

#: Seconds that an effect may take to which nothing sets a limit.
_LONG = 3600.0

#: Seconds after which a worker that sends no heartbeat has died.
_HEARTBEAT = 10.0


class WorkflowClock:
    """The workflow's time: that of its last task, the same again in a replay."""

    __slots__ = ()

    @staticmethod
    def now() -> datetime:
        """The time, UTC."""
        return workflow.now()

    @staticmethod
    def monotonic() -> float:
        """Seconds that only go forward."""
        return workflow.time()


class WorkflowEffects:
    """Effects as activities.

    Args:
        session: of the workflow.
    """

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    @staticmethod
    def now() -> datetime:
        """The time, UTC: the workflow's."""
        return workflow.now()

    @staticmethod
    def new_id() -> str:
        """An id that a replay makes again."""
        return str(workflow.uuid4())

    async def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Any:
        """The result of the effect, from the history or from an activity.

        Raises:
            NotAnActivity: it is a function of this process, and may not be repeated.
            StepMismatch: the history has another effect here.
            OutcomeUnknown: it may have happened, and what came of it is not on record.
            ModelError: the model failed, or the workers that asked it died.
        """
        effect = describe_effect(step_id, fn)
        if effect is None:
            return await self._run_here(step_id, fn, policy)
        self._session.watch_history()
        deadline = None if effect.seconds_left is None else workflow.time() + effect.seconds_left
        arguments: dict[str, Any] = {}
        if effect.tool:
            call = effect.state.unanswered[step_id.ordinal]
            arguments = encode_data(call.arguments)
        ref = EffectRef(
            agent=effect.agent,
            key=f"{effect.run_id}/{step_id}",
            step=str(step_id),
            policy=policy,
            digest=digest,
            name=effect.tool or effect.model,
            arguments=arguments,
            deadline=deadline,
        )
        with self._session.offer(ref.key, effect):
            came = await self._execute(ref, effect, step_id)
        if isinstance(came, ModelCallResult):
            return came
        # Temporal compares the kinds of activities, and not what they were asked.
        if came["key"] != ref.key or bare(came["digest"]) != bare(digest):
            mismatch = StepMismatch(
                f"the history has step {came['key']} for {came['digest']!r} where agent {effect.agent!r} now asks for "
                f"step {ref.key} with {digest!r}: this is not the code that was running"
            )
            # Otherwise the loop would take it for the failure of a model or a tool, and go on.
            cast("SegmentContext", current_run()).host.stop(mismatch)
            raise mismatch
        return await take_effect(fn, came)

    async def _run_here(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy) -> Any:
        """A step that is a closure: what may be repeated runs in this process, beside the workflow or in it."""
        if policy != "pure":
            raise NotAnActivity(
                f"step {step_id} may happen only {policy!r}, and a function cannot be sent to an activity; make it a "
                "tool, or declare it with effect='pure'"
            )
        if step_id.node == "review":  # it may ask a model, which is an activity of its own
            return await fn()
        with self._session.offer_step(str(step_id), fn) as key:
            return await workflow.execute_local_activity(
                LOCAL,
                key,
                start_to_close_timeout=timedelta(seconds=_LONG),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )

    async def _execute(self, ref: EffectRef, effect: RemoteEffect, step_id: StepId) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            handle = workflow.start_activity(
                TOOL if effect.tool else MODEL,
                ref,
                result_type=dict,
                **self._session.activity_options(ref, effect, _defaults(ref, self._session.limit(ref))),
            )
            try:
                return await self._session.wait_for(ref.key, handle, is_model=not effect.tool)
            except ActivityError as e:
                if self._session.cancelled is not None and not effect.tool and is_cancelled_exception(e):
                    return _cut(self._session.cancelled, effect)
                cause = e.cause
                if isinstance(cause, ApplicationError) and cause.type == NOT_BEGUN:
                    if attempt < ATTEMPTS:
                        await workflow.sleep(min(2.0**attempt, 30.0))
                        continue
                    raise _error_of(ref, f"no worker could begin it: {cause.message}", e) from e
                if effect.tool:
                    raise OutcomeUnknown(str(step_id)) from e
                raise _error_of(ref, _describe(e), e) from e
        raise AssertionError("the last attempt returns or raises")


def _defaults(ref: EffectRef, limit: float | None) -> workflow.ActivityConfig:
    seconds = _LONG if limit is None else limit + _MARGIN
    if ref.deadline is not None:
        seconds = min(seconds, max(0.0, ref.deadline - workflow.time()) + _MARGIN)
    return {
        "start_to_close_timeout": timedelta(seconds=seconds),
        "heartbeat_timeout": timedelta(seconds=_HEARTBEAT),
        "retry_policy": RetryPolicy(maximum_attempts=1 if ref.policy == "once" else ATTEMPTS),
        "cancellation_type": workflow.ActivityCancellationType.TRY_CANCEL,
        "summary": f"{ref.agent}: {ref.name} ({ref.step})",
    }


def _describe(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, exceptions.TimeoutError):
        return f"its worker died, or took too long, {ATTEMPTS} times"
    return str(cause or error)


def _error_of(ref: EffectRef, why: str, error: ActivityError) -> Exception:
    text = f"activity {ref.step} ({ref.name}) failed: {why}"
    if ref.policy != "model":
        return ActivityFailed(text)
    return ModelError(text, retryable=isinstance(error.cause, exceptions.TimeoutError))


def _cut(reason: str, effect: RemoteEffect) -> ModelCallResult:
    """The answer of a model that a cancel has cut off; of what it has cost, what was sent is estimated."""
    sent = 0 if effect.request is None else sum(map(estimate_tokens, effect.request.messages))
    usage = Usage(prompt_tokens=sent, estimated_tokens=sent)
    message = Message(Role.ASSISTANT, (), is_cut=True)
    return ModelCallResult(ModelResponse(message=message, usage=usage, stop_reason="cancelled"), usage, 1, reason)
